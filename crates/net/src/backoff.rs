//! When to try again.
//!
//! Pure arithmetic: randomness and time come in as arguments, and waiting is the caller's business.

use std::time::{Duration, SystemTime};

/// How often and how long something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Attempts in all, the first one included.
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub base_delay: Duration,
    /// The longest wait, whatever the other side asks for.
    pub max_delay: Duration,
    /// No further attempt is made when this much time would have passed since the first failure.
    pub max_total: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            max_attempts: 4,
            base_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(60),
            max_total: Duration::from_secs(120),
        }
    }
}

/// What is known when an attempt has failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failure {
    /// Attempts made so far, this one included.
    pub attempts: u32,
    /// Time since the first failure.
    pub since_first: Duration,
    /// What the other side asked us to wait.
    pub retry_after: Option<Duration>,
    /// A random number from 0 up to 1.
    pub random: f64,
}

impl Policy {
    /// How long to wait before the next attempt; none to give up.
    ///
    /// The other side's wish is followed, with a tenth more at random so that many callers do not come back
    /// in the same instant. Without a wish the wait is between half and all of the doubled delay.
    pub fn delay_after(&self, failure: &Failure) -> Option<Duration> {
        if failure.attempts >= self.max_attempts {
            return None;
        }
        let random = if failure.random.is_finite() { failure.random.clamp(0.0, 1.0) } else { 0.5 };
        let (wait, factor) = match failure.retry_after {
            Some(wish) => (wish, 1.0 + 0.1 * random),
            None => {
                let doublings = failure.attempts.saturating_sub(1).min(16);
                (self.base_delay.saturating_mul(1 << doublings), 0.5 + 0.5 * random)
            }
        };
        let wait = wait.min(self.max_delay).as_secs_f64() * factor;
        let delay = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX).min(self.max_delay);
        (failure.since_first.saturating_add(delay) <= self.max_total).then_some(delay)
    }
}

/// Reads a `Retry-After` header: seconds, or a date.
pub fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn failure(attempts: u32) -> Failure {
        Failure { attempts, since_first: Duration::ZERO, retry_after: None, random: 1.0 }
    }

    #[test]
    fn the_delay_doubles_up_to_the_longest_and_then_gives_up() {
        let policy =
            Policy { max_attempts: 6, base_delay: SECOND, max_delay: 5 * SECOND, max_total: 100 * SECOND };
        let delays: Vec<_> = (1..=6).map(|n| policy.delay_after(&failure(n))).collect();
        let expected = [Some(1), Some(2), Some(4), Some(5), Some(5), None];
        assert_eq!(delays, expected.map(|seconds| seconds.map(Duration::from_secs)));
    }

    #[test]
    fn jitter_takes_at_most_half_of_the_delay() {
        let policy = Policy { base_delay: 2 * SECOND, ..Policy::default() };
        assert_eq!(policy.delay_after(&Failure { random: 0.0, ..failure(1) }), Some(SECOND));
        assert_eq!(
            policy.delay_after(&Failure { random: f64::NAN, ..failure(1) }).map(|d| d > SECOND),
            Some(true)
        );
    }

    #[test]
    fn a_wish_is_followed_but_capped() {
        let policy = Policy { max_delay: 30 * SECOND, ..Policy::default() };
        let wish =
            |seconds| Failure { retry_after: Some(Duration::from_secs(seconds)), random: 0.0, ..failure(1) };
        assert_eq!(policy.delay_after(&wish(7)), Some(7 * SECOND));
        assert_eq!(policy.delay_after(&wish(3600)), Some(30 * SECOND));
        assert_eq!(policy.delay_after(&wish(0)), Some(Duration::ZERO));
    }

    #[test]
    fn extreme_settings_do_not_overflow() {
        let policy = Policy {
            max_attempts: u32::MAX,
            base_delay: Duration::MAX,
            max_delay: Duration::MAX,
            max_total: Duration::MAX,
        };
        assert_eq!(policy.delay_after(&failure(u32::MAX - 1)), Some(Duration::MAX));
        let wish = Failure { retry_after: Some(Duration::MAX), ..failure(1) };
        assert_eq!(policy.delay_after(&wish), Some(Duration::MAX));
    }

    #[test]
    fn no_attempt_starts_after_the_total() {
        let policy = Policy { base_delay: SECOND, max_total: 10 * SECOND, ..Policy::default() };
        let late = |seconds| Failure { since_first: Duration::from_secs(seconds), ..failure(1) };
        assert_eq!(policy.delay_after(&late(9)), Some(SECOND));
        assert_eq!(policy.delay_after(&late(10)), None);
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        assert_eq!(retry_after(" 3 ", now), Some(3 * SECOND));
        assert_eq!(retry_after("0.5", now), Some(Duration::from_millis(500)));
        let date = httpdate::fmt_http_date(now + 9 * SECOND);
        assert_eq!(retry_after(&date, now), Some(9 * SECOND));
        assert_eq!(retry_after(&httpdate::fmt_http_date(now - SECOND), now), Some(Duration::ZERO));
        for nonsense in ["soon", "-1", "NaN", "inf", ""] {
            assert_eq!(retry_after(nonsense, now), None, "{nonsense:?}");
        }
    }
}
