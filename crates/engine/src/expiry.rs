//! Ends waits that have lasted long enough: one timer for all sessions, over what the store says.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use petasos_core::recovery::WorkKind;
use petasos_store::Expiring;
use tokio::sync::Notify;

use crate::actor::Command;
use crate::due;
use crate::engine::{Engine, Shared, now};
use crate::error::{Error, Result};

/// Sessions that are dealt with at once.
const AT_ONCE: usize = 100;

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
    due::keep("waits", &shared.expiry.0, &shared.closing, || look(&shared)).await;
}

/// Deals with what is due, and says when something else is.
async fn look(shared: &Arc<Shared>) -> Result<Option<Timestamp>> {
    let expiring = shared.store.expiring_sessions(AT_ONCE).await?;
    let now = now();
    let count = expiring.iter().filter(|session| session.at <= now).count();
    let is_held = |session: &&Expiring| {
        let Expiring { tenant, session_id, .. } = session;
        shared.recovery.set_aside.holds(WorkKind::Expiry, tenant, session_id.as_str())
    };
    let due = expiring.iter().take(count).filter(|session| !is_held(session));
    let expired = join_all(due.map(|session| expire(shared, session))).await;
    let is_any = !expired.is_empty();
    expired.into_iter().collect::<Result<()>>()?;
    Ok(match expiring.get(count) {
        Some(next) => Some(next.at),
        // There may be more than were asked for.
        None => (is_any && count == AT_ONCE).then_some(now),
    })
}

async fn expire(shared: &Arc<Shared>, session: &Expiring) -> Result<()> {
    let engine = Engine { shared: Arc::clone(shared) };
    let Expiring { tenant, session_id, .. } = session;
    match engine.command(tenant, session_id, |reply| Command::Expire { reply }).await {
        // It was deleted in the meantime.
        Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => {
            tracing::warn!(%session_id, %error, "a wait could not be ended; it is tried again");
            Err(error)
        }
    }
}
