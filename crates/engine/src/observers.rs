//! Tells observers what happened, beside the turn.
//!
//! The observers of one session are told one thing after another, in the order in which things happened, whichever
//! actor saw them. Nothing waits for that: an observer that hangs holds up what its session's observers are told
//! next, and nothing else; one that panics is not heard of again.

use std::collections::{HashMap, HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use petasos_core::ids::SessionId;
use petasos_hooks::{Observation, TurnInfo};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::engine::Shared;
use crate::feed::lock;

/// How much may wait to be told about one session. What comes on top is not told.
const MAX_WAITING: usize = 1024;

/// What is yet to be told.
#[derive(Default)]
pub(crate) struct Observers {
    /// By session. A session is here as long as a task tells its observers.
    queues: Mutex<HashMap<SessionId, VecDeque<Entry>>>,
    tasks: TaskTracker,
}

/// Calls whose end hooks were told: a call that is stopped as it ends is told of once. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct ToldEnds(Arc<Mutex<HashSet<String>>>);

impl ToldEnds {
    /// Notes that the end of a call is told; false if it was already.
    pub(crate) fn note(&self, tool_use_id: &str) -> bool {
        lock(&self.0).insert(tool_use_id.to_owned())
    }
}

/// What is next for the observers of a session.
enum Entry {
    /// They are told something.
    Tell(Box<(TurnInfo, Observation)>),
    /// Somebody else hears that everything before this was told.
    Say(oneshot::Sender<()>),
    /// They wait for that.
    Await(oneshot::Receiver<()>),
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
    if !shared.hooks.is_empty() {
        queue(shared, &turn.session_id.clone(), Entry::Tell(Box::new((turn, observation))));
    }
}

/// Has whatever the observers of a session are told from now on come after what those of another were told so far.
pub(crate) fn tell_after(shared: &Arc<Shared>, session_id: &SessionId, other: &SessionId) {
    if !shared.hooks.is_empty() {
        let (say, hears) = oneshot::channel();
        queue(shared, other, Entry::Say(say));
        queue(shared, session_id, Entry::Await(hears));
    }
}

/// Waits until the observers of a session were told everything so far. It ends early if too much waits to be told, or
/// the server stops.
pub(crate) async fn told(shared: &Arc<Shared>, session_id: &SessionId) {
    if !shared.hooks.is_empty() {
        let (say, hears) = oneshot::channel();
        queue(shared, session_id, Entry::Say(say));
        drop(hears.await);
    }
}

/// Does something once the observers of a session were told everything so far, unless the server stops before. It
/// counts as theirs: no turn waits for it, and a server that stops gives it the time that hooks have.
pub(crate) fn after_told<F>(shared: &Arc<Shared>, session_id: SessionId, work: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let waiting = Arc::clone(shared);
    shared.observers.tasks.spawn(async move {
        tokio::select! {
            () = told(&waiting, &session_id) => {}
            () = waiting.stopping.cancelled() => return,
        }
        work.await;
    });
}

fn queue(shared: &Arc<Shared>, session_id: &SessionId, entry: Entry) {
    let mut queues = lock(&shared.observers.queues);
    match queues.get_mut(session_id) {
        Some(queue) if queue.len() < MAX_WAITING => queue.push_back(entry),
        Some(_) => {
            let Entry::Tell(told) = entry else { return };
            let (_, observation) = *told;
            tracing::warn!(%session_id, ?observation, "hooks are too far behind and are not told of this");
        }
        None => {
            queues.insert(session_id.clone(), VecDeque::from([entry]));
            shared.observers.tasks.spawn(tell_all(Arc::clone(shared), session_id.clone()));
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
    while let Some(entry) = next(&shared, &session_id) {
        tokio::select! {
            biased;
            // What is left is told to nobody, and whoever waits for that has to know.
            () = shared.stopping.cancelled() => drop(lock(&shared.observers.queues).remove(&session_id)),
            () = deal_with(&shared, entry) => {}
        }
    }
}

async fn deal_with(shared: &Shared, entry: Entry) {
    match entry {
        Entry::Tell(told) => tell_and_wait(shared, &told.0, told.1).await,
        // They need not be there any more, on either side.
        Entry::Say(say) => drop(say.send(())),
        Entry::Await(hears) => drop(hears.await),
    }
}

/// What is next. The session is forgotten when there is nothing.
fn next(shared: &Shared, session_id: &SessionId) -> Option<Entry> {
    let mut queues = lock(&shared.observers.queues);
    let next = queues.get_mut(session_id).and_then(VecDeque::pop_front);
    if next.is_none() {
        queues.remove(session_id);
    }
    next
}
