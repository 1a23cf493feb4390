//! Does what is due and sleeps until the next: the loop of everything that goes by times in the store.
//!
//! What is due, and when, is read each time, so nothing has to be remembered, and a restart changes nothing.

use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::engine::now;
use crate::error::Result;

/// How long to wait after something could not be done.
pub(crate) const AFTER_TROUBLE: Duration = Duration::from_secs(5);
/// The longest sleep; clocks may be set.
pub(crate) const LONGEST: Duration = Duration::from_secs(60);

/// Does `work` now, whenever it said that there is more, and whenever `changed` is told, until `closing`. `what` names
/// it in the log.
pub(crate) async fn keep<F>(what: &str, changed: &Notify, closing: &CancellationToken, work: impl Fn() -> F)
where
    F: Future<Output = Result<Option<Timestamp>>>,
{
    let keeping = async {
        loop {
            let wait = match work().await {
                Ok(None) => Duration::MAX,
                Ok(Some(at)) => until(at).min(LONGEST),
                Err(error) => {
                    tracing::warn!(%error, "{what} could not be looked after; trying again");
                    AFTER_TROUBLE
                }
            };
            tokio::select! {
                () = sleep(wait) => {}
                () = changed.notified() => {}
            }
        }
    };
    tokio::select! {
        () = keeping => {}
        () = closing.cancelled() => {}
    }
}

/// How long it is until then; nothing if that is over.
pub(crate) fn until(at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now())).unwrap_or_default()
}
