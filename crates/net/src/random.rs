//! Randomness that is good enough to spread attempts.

use std::hash::{BuildHasher, RandomState};

/// A number from 0 up to 1 for the jitter of waits, from the randomness that the standard library has for its maps.
pub fn random() -> f64 {
    let bits = RandomState::new().hash_one(());
    (bits >> 11) as f64 / (1u64 << 53) as f64
}
