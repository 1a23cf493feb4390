//! What an attempt came to, and what follows from it.

use std::time::Duration;

use petasos_net::backoff::{Failure, Policy};

/// How long a receiver may have us wait, even where our own waits are shorter: it knows when it will be back. One that
/// asks for more is asked again, since the events of its session wait for it.
pub(super) const LONGEST_WISH: Duration = Duration::from_secs(3600);

/// What a receiver answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// What it asked us to wait.
    pub(super) retry_after: Option<Duration>,
}

/// What an attempt came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Why it failed; none if it did not.
    pub(super) error: Option<String>,
    pub(super) next: Next,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Delivered,
    Dead,
    After(Duration),
}

/// Judges an attempt: the answer, or why there is none. `tries` counts this one too.
pub(super) fn judge(outcome: &Result<Answer, String>, tries: u32, policy: &Policy, random: f64) -> Judgement {
    let (error, retry_after) = match outcome {
        Ok(Answer { status: 200..=299, .. }) => return Judgement { error: None, next: Next::Delivered },
        Ok(Answer { status: 410, .. }) => {
            let error = Some("the receiver answered 410: it wants no more of this".to_owned());
            return Judgement { error, next: Next::Dead };
        }
        Ok(Answer { status: status @ 300..=399, .. }) => {
            (format!("the receiver answered {status}; redirects are not followed"), None)
        }
        Ok(Answer { status, retry_after }) => (format!("the receiver answered {status}"), *retry_after),
        Err(problem) => (problem.clone(), None),
    };
    let failure = Failure { attempts: tries, since_first: Duration::ZERO, retry_after, random };
    let longest = if retry_after.is_some() { policy.max_delay.max(LONGEST_WISH) } else { policy.max_delay };
    let policy = Policy { max_delay: longest, ..*policy };
    let next = policy.delay_after(&failure).map_or(Next::Dead, Next::After);
    Judgement { error: Some(error), next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliveries::DeliverySettings;

    fn policy() -> Policy {
        DeliverySettings::default().events.policy()
    }

    fn answer(status: u16) -> Result<Answer, String> {
        Ok(Answer { status, retry_after: None })
    }

    #[test]
    fn only_2xx_is_success() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(judge(&answer(status), 1, &policy(), 1.0).next, Next::Delivered, "{status}");
        }
        for status in [100, 301, 302, 307, 400, 404, 429, 500, 503] {
            let judgement = judge(&answer(status), 1, &policy(), 1.0);
            assert_eq!(judgement.next, Next::After(Duration::from_secs(1)), "{status}");
            assert!(judgement.error.unwrap().contains(&status.to_string()));
        }
        let judgement = judge(&Err("no connection".into()), 1, &policy(), 1.0);
        assert_eq!(judgement.error.as_deref(), Some("no connection"));
    }

    #[test]
    fn gone_is_given_up_at_once() {
        assert_eq!(judge(&answer(410), 1, &policy(), 1.0).next, Next::Dead);
    }

    #[test]
    fn a_wish_to_wait_is_followed() {
        let answer = Ok(Answer { status: 429, retry_after: Some(Duration::from_secs(7)) });
        assert_eq!(judge(&answer, 1, &policy(), 0.0).next, Next::After(Duration::from_secs(7)));
    }

    #[test]
    fn a_wish_may_be_longer_than_our_own_waits_but_not_endless() {
        let policy = Policy { max_delay: Duration::from_secs(1), ..policy() };
        let wait = |seconds| {
            let answer = Ok(Answer { status: 503, retry_after: Some(Duration::from_secs(seconds)) });
            judge(&answer, 1, &policy, 0.0).next
        };
        assert_eq!(wait(4), Next::After(Duration::from_secs(4)));
        assert_eq!(wait(86_400), Next::After(Duration::from_secs(3600)));
    }

    #[test]
    fn the_usual_settings_try_for_as_long_as_they_say() {
        let all = |policy: Policy| {
            let waits = (1..).map_while(|tries| match judge(&answer(500), tries, &policy, 1.0).next {
                Next::After(wait) => Some(wait.as_secs()),
                _ => None,
            });
            waits.collect::<Vec<_>>()
        };
        let settings = DeliverySettings::default();
        let (events, callbacks) = (all(settings.events.policy()), all(settings.callbacks.policy()));
        assert_eq!((events.len(), events.iter().sum::<u64>() / 60), (11, 18));
        assert_eq!((callbacks.len(), callbacks.iter().sum::<u64>() / 86_400), (18, 2));
    }
}
