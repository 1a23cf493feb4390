//! Starts and ends of engines, of which a test can lose the end.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_store::{
    IndexRecovery, LastStart, RecoveryStore, Result, StartNote, WorkFound, WorkKey, WorkRecord,
};

use super::WatchedStore;

impl WatchedStore {
    /// Takes no note of a clean stop from here on, so that it looks like a crash.
    pub(crate) fn lose_the_end(&self) {
        self.progress.send_modify(|progress| progress.loses_the_end = true);
    }

    /// Keeps no run from here on, and does not say so.
    pub(crate) fn hold_runs(&self) {
        self.progress.send_modify(|progress| progress.holds_runs = true);
    }

    /// Waits until somebody wants to add a run.
    pub(crate) async fn holds_a_run(&self) {
        let _ = self.progress.subscribe().wait_for(|progress| progress.held_runs > 0).await;
    }
}

impl IndexRecovery for WatchedStore {
    fn index_is_set_aside(&self) -> BoxFuture<'_, Result<bool>> {
        self.inner.index_is_set_aside()
    }

    fn index_one_by_one(&self) -> BoxFuture<'_, Result<()>> {
        self.inner.index_one_by_one()
    }
}

impl RecoveryStore for WatchedStore {
    fn last_start(&self) -> BoxFuture<'_, Result<LastStart>> {
        self.inner.last_start()
    }

    fn work_under_way(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<WorkFound>>> {
        self.inner.work_under_way(now, limit)
    }

    fn record_start(&self, at: Timestamp, work: Vec<WorkRecord>) -> BoxFuture<'_, Result<()>> {
        self.inner.record_start(at, work)
    }

    fn note_start(&self, note: StartNote) -> BoxFuture<'_, Result<()>> {
        if self.progress.borrow().loses_the_end {
            return Box::pin(async { Ok(()) });
        }
        self.inner.note_start(note)
    }

    fn keep_work(&self, record: WorkRecord) -> BoxFuture<'_, Result<()>> {
        self.inner.keep_work(record)
    }

    fn forget_work(&self, key: WorkKey) -> BoxFuture<'_, Result<()>> {
        self.inner.forget_work(key)
    }
}
