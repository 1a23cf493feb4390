//! How many requests a key may make.

use std::num::NonZeroU32;
use std::time::Duration;

use axum::http::StatusCode;
use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};

use crate::problem::Problem;

/// How many requests each key may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Requests per second, over time.
    pub per_second: NonZeroU32,
    /// Requests at once, after a quiet time.
    pub burst: NonZeroU32,
}

/// The requests of every key.
pub(crate) struct Limiter {
    limiter: RateLimiter<String, HashMapStateStore<String>, DefaultClock>,
    clock: DefaultClock,
}

impl Limiter {
    pub(crate) fn new(limit: RateLimit) -> Self {
        let quota = Quota::per_second(limit.per_second).allow_burst(limit.burst);
        Limiter { limiter: RateLimiter::hashmap(quota), clock: DefaultClock::default() }
    }

    /// Counts a request of a key. Only valid keys come here, so the keys are as many as there are.
    pub(crate) fn check(&self, key_hash: &str) -> Result<(), Problem> {
        self.limiter
            .check_key(&key_hash.to_owned())
            .map_err(|until| too_many(until.wait_time_from(self.clock.now())))
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_millis().div_ceil(1000).max(1);
    let message = format!("This key makes too many requests; the next one is welcome in {seconds} s.");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message).retry_after(seconds)
}
