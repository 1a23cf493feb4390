//! A supervisor that was started before its command is known.
//!
//! Starting this program and making namespaces takes most of the time that a command costs. So after a command another
//! supervisor is started, which waits for the next one, for a minute at most.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::process::Child;
use tokio::task::AbortHandle;

use crate::namespaces::Namespaces;
use crate::sandbox::Supervisor;

/// How long one waits for a command.
const PATIENCE: Duration = Duration::from_secs(60);

/// A supervisor that waits for its job. It ends when the socket is closed.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) control: UnixStream,
    pub(crate) child: Child,
}

impl Waiting {
    pub(crate) fn start(supervisor: &Supervisor, namespaces: Option<Namespaces>) -> io::Result<Waiting> {
        let (control, theirs) = UnixStream::pair()?;
        let child = supervisor.spawn(theirs.into(), namespaces)?;
        Ok(Waiting { control, child })
    }
}

/// The place of the one supervisor that waits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spare(Arc<Mutex<Option<Prepared>>>);

#[derive(Debug)]
struct Prepared {
    namespaces: Option<Namespaces>,
    waiting: Waiting,
    /// Ends it when nobody has taken it for long.
    ending: AbortHandle,
}

impl Spare {
    /// Takes the one that waits, if it has these namespaces and has not ended.
    pub(crate) fn take(&self, namespaces: Option<Namespaces>) -> Option<Waiting> {
        let prepared = self.lock().take_if(|prepared| prepared.namespaces == namespaces)?;
        prepared.ending.abort();
        let mut waiting = prepared.waiting;
        matches!(waiting.child.try_wait(), Ok(None)).then_some(waiting)
    }

    /// Starts one that waits, unless there is one. Must be called within a Tokio runtime.
    pub(crate) fn prepare(&self, supervisor: &Supervisor, namespaces: Option<Namespaces>) {
        let mut place = self.lock();
        if place.is_some() {
            return;
        }
        match Waiting::start(supervisor, namespaces) {
            Ok(waiting) => {
                let ending = tokio::spawn(end_later(Arc::downgrade(&self.0))).abort_handle();
                *place = Some(Prepared { namespaces, waiting, ending });
            }
            Err(error) => tracing::debug!(%error, "the next command starts its supervisor itself"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Prepared>> {
        lock(&self.0)
    }
}

async fn end_later(place: Weak<Mutex<Option<Prepared>>>) {
    tokio::time::sleep(PATIENCE).await;
    if let Some(place) = place.upgrade() {
        *lock(&place) = None;
    }
}

fn lock(place: &Mutex<Option<Prepared>>) -> MutexGuard<'_, Option<Prepared>> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}
