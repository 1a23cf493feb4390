//! Tries work that was set aside, one piece at a time, and keeps the store's records of it up to date.

use std::sync::Arc;
use std::time::Duration;

use petasos_core::recovery::WorkKind;
use petasos_store::{WorkFound, WorkRecord, WorkState};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::set_aside::Change;
use crate::engine::{Shared, wake};
use crate::feed::lock;
use crate::own_workspace;

/// How long to wait before the store is asked again after it failed.
const STORE_REST: Duration = Duration::from_secs(1);

/// Looks after work that is set aside until the server stops.
pub(super) async fn keep(shared: Arc<Shared>, waiting: Vec<WorkFound>) {
    let Some(changes) = lock(&shared.recovery.set_aside.to_store).take() else { return };
    let mut keeper = Keeper { shared: Arc::clone(&shared), changes };
    tokio::select! {
        () = keeper.keep(waiting) => {}
        () = shared.closing.cancelled() => {}
    }
    // What ended in the meantime must not be tried again.
    keeper.store_all().await;
}

struct Keeper {
    shared: Arc<Shared>,
    changes: mpsc::UnboundedReceiver<Change>,
}

impl Keeper {
    async fn keep(&mut self, waiting: Vec<WorkFound>) {
        let times = self.shared.recovery.times;
        let started = self.shared.recovery.started.get().copied().unwrap_or_else(Instant::now);
        self.store_until(started + times.settled, || false).await;
        self.shared.recovery.set_aside.drop_told();
        for work in waiting {
            self.attempt(work).await;
        }
        while !self.shared.recovery.set_aside.is_empty() {
            self.store_until(Instant::now() + times.proven, || false).await;
            self.shared.recovery.set_aside.drop_told();
        }
    }

    /// Tries one piece of work. Returns when it is done, or has shown that the server outlives it.
    async fn attempt(&mut self, work: WorkFound) {
        let shared = Arc::clone(&self.shared);
        let set_aside = &shared.recovery.set_aside;
        let key = &work.key;
        let Some(record) = set_aside.waiting(key) else { return };
        let trying = WorkRecord { state: WorkState::Trying, ..record.clone() };
        // Before it starts: if the process dies of it, the next one knows.
        while let Err(error) = shared.store.keep_work(trying.clone()).await {
            tracing::warn!(%error, "work that was set aside cannot be tried yet");
            tokio::time::sleep(STORE_REST).await;
        }
        set_aside.release(key);
        tracing::info!(kind = key.kind.as_str(), id = key.id, "work that was set aside is tried");
        start(&shared, &work);
        let is_over = || !set_aside.tries(key.kind, &key.tenant, &key.id);
        self.store_until(Instant::now() + shared.recovery.times.proven, is_over).await;
        if !is_over() {
            // It goes on, and the server lives.
            self.store(Change::Keep(record)).await;
        }
    }

    /// Stores changes as they come, until a time or until something is the case.
    async fn store_until(&mut self, at: Instant, is_over: impl Fn() -> bool) {
        while !is_over() {
            tokio::select! {
                Some(change) = self.changes.recv() => self.store(change).await,
                () = tokio::time::sleep_until(at) => return,
            }
        }
    }

    async fn store_all(&mut self) {
        while let Ok(change) = self.changes.try_recv() {
            self.store(change).await;
        }
    }

    async fn store(&self, change: Change) {
        let stored = match change {
            Change::Keep(record) => self.shared.store.keep_work(record).await,
            Change::Forget(key) => self.shared.store.forget_work(key).await,
        };
        if let Err(error) = stored {
            // At the next start it is at another position, which says the same.
            tracing::warn!(%error, "a record of work that was set aside cannot be changed");
        }
    }
}

/// Lets a piece of work start by the same way as always.
fn start(shared: &Arc<Shared>, work: &WorkFound) {
    let tenant = &work.key.tenant;
    match (work.key.kind, &work.session_id) {
        (WorkKind::ToolCall | WorkKind::ModelCall | WorkKind::Wake, Some(session_id)) => {
            wake(shared, tenant, session_id);
        }
        (WorkKind::Run, Some(session_id)) => {
            shared.runs.waiting.add(session_id);
            wake(shared, tenant, session_id);
        }
        (WorkKind::Removal, Some(session_id)) => {
            shared.runs.changed.notify_one();
            let (removing, tenant, session_id) = (Arc::clone(shared), tenant.clone(), session_id.clone());
            shared.tasks.spawn(async move {
                own_workspace::remove_if_noted(&removing, &tenant, &session_id).await;
            });
        }
        (WorkKind::Expiry, _) => shared.expiry.changed(),
        (WorkKind::Schedule, _) => shared.runs.rescheduled.notify_one(),
        (WorkKind::Delivery, _) => shared.deliveries.wake(),
        (WorkKind::Index, _) => {
            let (indexing, key) = (Arc::clone(shared), work.key.clone());
            shared.tasks.spawn(async move {
                match indexing.store.index_one_by_one().await {
                    Ok(()) => indexing.recovery.set_aside.succeeded(key.kind, &key.tenant, &key.id),
                    Err(error) => tracing::warn!(%error, "messages that were set aside cannot be indexed"),
                }
            });
        }
        _ => {}
    }
}
