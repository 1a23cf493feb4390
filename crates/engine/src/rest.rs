//! Sessions that could not be written rest for a while, and are then picked up again from their logs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use petasos_core::ids::{SessionId, TenantId};

use crate::engine::{Shared, wake};
use crate::feed::lock;

/// How long a session rests after its first failure. Every further one doubles it, because a turn that is picked
/// up may pay for a model call whose answer cannot be kept again.
const FIRST: Duration = Duration::from_secs(5);
/// How often the time is doubled at most.
const MAX_DOUBLINGS: u32 = 6;
/// How often a session is tried that is damaged. Trying does not mend it, but somebody may.
const MAX_DAMAGED: u32 = 4;

/// Why a session failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ailment {
    /// It is not what was written.
    Damage,
    /// The store has no room.
    FullStore,
    /// Something that may pass.
    Passing,
}

/// Sessions that failed since they last went to sleep in good order.
#[derive(Default)]
pub(crate) struct Resting(Mutex<HashMap<SessionId, Rest>>);

#[derive(Default)]
struct Rest {
    failures: u32,
    /// Whether something waits to wake it, so that many failing requests do not make many waits.
    waiting: bool,
}

impl Resting {
    /// The session is well, or gone.
    pub(crate) fn forget(&self, session_id: &SessionId) {
        lock(&self.0).remove(session_id);
    }

    /// Counts a failure, and says how long to rest; none if the session rests already, or is given up.
    fn fail(&self, session_id: &SessionId, ailment: Ailment) -> Option<Duration> {
        let mut resting = lock(&self.0);
        let rest = resting.entry(session_id.clone()).or_default();
        if rest.waiting {
            return None;
        }
        let time = FIRST * 2_u32.pow(rest.failures.min(MAX_DOUBLINGS));
        rest.failures = rest.failures.saturating_add(1);
        if ailment == Ailment::Damage && rest.failures > MAX_DAMAGED {
            tracing::error!(
                %session_id,
                "the session is damaged and given up; mend or restore the database and start the server again"
            );
            return None;
        }
        rest.waiting = true;
        Some(time)
    }

    fn rested(&self, session_id: &SessionId) {
        if let Some(rest) = lock(&self.0).get_mut(session_id) {
            rest.waiting = false;
        }
    }
}

/// Wakes a session that failed, after a while.
pub(crate) fn rest_and_wake(shared: Arc<Shared>, tenant: TenantId, session_id: SessionId, ailment: Ailment) {
    let Some(time) = shared.resting.fail(&session_id, ailment) else { return };
    let tasks = shared.tasks.clone();
    tasks.spawn(async move {
        tokio::select! {
            () = tokio::time::sleep(time) => {
                shared.resting.rested(&session_id);
                wake(&shared, &tenant, &session_id);
            }
            () = shared.closing.cancelled() => {}
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_rests_once_at_a_time_and_longer_each_time() {
        let resting = Resting::default();
        let session_id: SessionId = "session_1".parse().unwrap();
        let mut times = Vec::new();
        for _ in 0..9 {
            times.extend(resting.fail(&session_id, Ailment::Passing).map(|time| time.as_secs()));
            assert_eq!(resting.fail(&session_id, Ailment::Passing), None);
            resting.rested(&session_id);
        }
        assert_eq!(times, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
        resting.forget(&session_id);
        assert_eq!(resting.fail(&session_id, Ailment::Passing), Some(FIRST));
    }

    #[test]
    fn a_damaged_session_is_given_up() {
        let resting = Resting::default();
        let session_id: SessionId = "session_1".parse().unwrap();
        for number in 1..10 {
            let rests = resting.fail(&session_id, Ailment::Damage).is_some();
            assert_eq!(rests, number <= MAX_DAMAGED, "{number}");
            resting.rested(&session_id);
        }
    }
}
