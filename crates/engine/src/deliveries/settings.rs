//! How long and how often deliveries are tried.

use std::time::Duration;

use petasos_net::backoff::Policy;

use super::judge::LONGEST_WISH;

/// Bounds of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliverySettings {
    /// How long a receiver may take until the head of its answer is here.
    pub timeout: Duration,
    /// How often events are tried.
    pub events: Retries,
    /// How often callbacks are tried.
    pub callbacks: Retries,
    /// How many are sent at the same time. A quarter as many that failed before are sent besides.
    pub in_flight: usize,
    /// How long a delivery is kept once it is settled.
    pub keep: Duration,
}

/// How often something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// The wait after the first failure; it doubles with each further one.
    pub first_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
    /// Attempts in all.
    pub max_attempts: u32,
}

impl Default for DeliverySettings {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        DeliverySettings {
            timeout: seconds(15),
            // About 18 minutes.
            events: Retries { first_delay: seconds(1), max_delay: seconds(300), max_attempts: 12 },
            // About 3 days.
            callbacks: Retries { first_delay: seconds(5), max_delay: seconds(43_200), max_attempts: 19 },
            in_flight: 512,
            keep: seconds(30 * 24 * 3600),
        }
    }
}

impl DeliverySettings {
    /// The longest pause before another attempt, with what chance adds to it.
    pub(super) fn longest_pause(&self) -> Duration {
        let longest = self.events.max_delay.max(self.callbacks.max_delay).max(LONGEST_WISH);
        longest.saturating_add(longest / 8)
    }
}

impl Retries {
    pub(super) fn policy(self) -> Policy {
        Policy {
            max_attempts: self.max_attempts,
            base_delay: self.first_delay,
            max_delay: self.max_delay,
            max_total: Duration::MAX,
        }
    }
}
