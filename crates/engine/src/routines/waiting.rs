//! Which sessions may have runs waiting for them.
//!
//! The queue itself is the table of runs. This only spares sessions that nobody waits for the look into it.

use std::collections::HashSet;
use std::sync::Mutex;

use petasos_core::ids::SessionId;

use crate::feed::lock;

/// Sessions that may have runs waiting for them.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashSet<SessionId>>);

impl Waiting {
    /// A run may wait for this session.
    pub(crate) fn add(&self, session_id: &SessionId) {
        lock(&self.0).insert(session_id.clone());
    }

    /// Whether a run may wait for this session. Whoever asks looks after it, so that a run that is accepted in the
    /// meantime is noted again.
    pub(crate) fn take(&self, session_id: &SessionId) -> bool {
        lock(&self.0).remove(session_id)
    }
}
