//! Ends waits that have lasted long enough: one timer for all sessions, over what the store says.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use petasos_store::Expiring;
use tokio::sync::Notify;

use crate::actor::Command;
use crate::engine::{Engine, Shared, now};
use crate::error::Error;

/// Sessions that are dealt with at once.
const AT_ONCE: usize = 100;
/// How long to wait after something went wrong.
const PAUSE: Duration = Duration::from_secs(5);

/// Told whenever a session begins to wait for a time.
#[derive(Default)]
pub(crate) struct Expiry(Notify);

impl Expiry {
    /// A session now waits until some time, which may be earlier than that of all others.
    pub(crate) fn changed(&self) {
        self.0.notify_one();
    }
}

/// Watches the times of all sessions until the engine closes.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let watching = async {
        loop {
            let wait = look(&shared).await;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = shared.expiry.0.notified() => {}
            }
        }
    };
    tokio::select! {
        () = watching => {}
        () = shared.closing.cancelled() => {}
    }
}

/// Deals with what is due, and says how long nothing else is.
async fn look(shared: &Arc<Shared>) -> Duration {
    let expiring = match shared.store.expiring_sessions(AT_ONCE).await {
        Ok(expiring) => expiring,
        Err(error) => {
            tracing::error!(%error, "the sessions that wait for a time cannot be listed");
            return PAUSE;
        }
    };
    let now = now();
    let due = expiring.iter().filter(|session| session.at <= now);
    let expired = join_all(due.map(|session| expire(shared, session))).await;
    if expired.iter().any(Result::is_err) {
        return PAUSE;
    }
    match expiring.get(expired.len()) {
        Some(next) => until(next.at, now),
        // There may be more than were asked for.
        None if expired.len() == AT_ONCE => Duration::ZERO,
        None => Duration::MAX,
    }
}

async fn expire(shared: &Arc<Shared>, session: &Expiring) -> Result<(), ()> {
    let engine = Engine { shared: Arc::clone(shared) };
    let Expiring { tenant, session_id, .. } = session;
    match engine.command(tenant, session_id, |reply| Command::Expire { reply }).await {
        // It was deleted in the meantime.
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => {
            tracing::warn!(%session_id, %error, "a wait could not be ended; it is tried again");
            Err(())
        }
    }
}

fn until(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}
