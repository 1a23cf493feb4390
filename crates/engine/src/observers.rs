//! Tells observers what happened, beside the turn.
//!
//! The observers of one session are told one thing after another, in the order in which things happened, whichever
//! actor saw them. Nothing waits for that: an observer that hangs holds up what its session's observers are told
//! next, and nothing else; one that panics is not heard of again.

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use petasos_core::ids::SessionId;
use petasos_hooks::{Observation, TurnInfo};
use tokio_util::task::TaskTracker;

use crate::engine::Shared;
use crate::feed::lock;

/// How much may wait to be told about one session. What comes on top is not told.
const MAX_WAITING: usize = 1024;

/// What is yet to be told.
#[derive(Default)]
pub(crate) struct Observers {
    /// By session. A session is here as long as a task tells its observers.
    queues: Mutex<HashMap<SessionId, VecDeque<(TurnInfo, Observation)>>>,
    tasks: TaskTracker,
}

impl Observers {
    /// Waits until everything so far was told.
    pub(crate) async fn told(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Tells observers, without waiting for them.
pub(crate) fn tell(shared: &Arc<Shared>, turn: TurnInfo, observation: Observation) {
    if shared.hooks.is_empty() {
        return;
    }
    let mut queues = lock(&shared.observers.queues);
    match queues.get_mut(&turn.session_id) {
        Some(queue) if queue.len() < MAX_WAITING => queue.push_back((turn, observation)),
        Some(_) => {
            let session_id = turn.session_id;
            tracing::warn!(%session_id, ?observation, "hooks are too far behind and are not told of this");
        }
        None => {
            let session_id = turn.session_id.clone();
            queues.insert(session_id.clone(), VecDeque::from([(turn, observation)]));
            shared.observers.tasks.spawn(tell_all(Arc::clone(shared), session_id));
        }
    }
}

/// Tells observers and waits until they are done. A panic is theirs alone.
pub(crate) async fn tell_and_wait(shared: &Shared, turn: &TurnInfo, observation: Observation) {
    let told = async { shared.hooks.observe(turn, observation).await };
    if AssertUnwindSafe(told).catch_unwind().await.is_err() {
        tracing::error!(session_id = %turn.session_id, "a hook ended in a bug");
    }
}

async fn tell_all(shared: Arc<Shared>, session_id: SessionId) {
    while let Some((turn, observation)) = next(&shared, &session_id) {
        tokio::select! {
            () = tell_and_wait(&shared, &turn, observation) => {}
            () = shared.stopping.cancelled() => return,
        }
    }
}

/// What is to be told next. The session is forgotten when there is nothing.
fn next(shared: &Shared, session_id: &SessionId) -> Option<(TurnInfo, Observation)> {
    let mut queues = lock(&shared.observers.queues);
    let next = queues.get_mut(session_id).and_then(VecDeque::pop_front);
    if next.is_none() {
        queues.remove(session_id);
    }
    next
}
