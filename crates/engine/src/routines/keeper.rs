//! Looks after runs that nobody else looks after: those whose time is up, and sessions that they leave behind.
//!
//! One task does this for all runs. What it goes by is in the store, so a restart changes nothing.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use jiff::Timestamp;
use petasos_core::recovery::WorkKind;
use petasos_core::run::{RunError, RunRecord, RunStatus};

use crate::due;
use crate::engine::{Engine, Shared, now, wake};
use crate::error::{Error, Result};
use crate::recovery::Hold;

/// How many runs are looked at together.
const BATCH: usize = 64;
/// How many of them are ended at the same time.
const AT_ONCE: usize = 8;

impl Engine {
    /// Gets runs going again that the last process left, and keeps them going.
    pub(crate) async fn recover_runs(&self) -> Result<()> {
        for run in self.shared.store.unsettled_runs().await? {
            let id = run.id.clone();
            if let Err(error) = self.recover_run(run).await {
                // Its deadline still holds.
                tracing::warn!(run = %id, %error, "a run could not be picked up again");
            }
        }
        self.shared.tasks.spawn(keep(Arc::clone(&self.shared)));
        self.shared.tasks.spawn(super::schedules::keep(Arc::clone(&self.shared)));
        Ok(())
    }

    async fn recover_run(&self, run: RunRecord) -> Result<()> {
        match self.shared.store.session(&run.tenant, &run.session_id).await {
            Ok(None) => self.end_run(run, RunError::session_gone()).await.map(drop),
            Err(petasos_store::Error::Damaged { .. }) => {
                self.end_run(run, RunError::session_damaged()).await.map(drop)
            }
            found => {
                found?;
                let set_aside = &self.shared.recovery.set_aside;
                if run.status == RunStatus::Accepted
                    && !set_aside.holds(WorkKind::Run, &run.tenant, run.id.as_str())
                {
                    self.shared.runs.waiting.add(&run.session_id);
                    if set_aside.hold_of(&run.tenant, &run.session_id) != Hold::Wait {
                        wake(&self.shared, &run.tenant, &run.session_id);
                    }
                }
                Ok(())
            }
        }
    }

    /// Does everything that can be done now, and says when there is more. Trouble with the one is no reason to leave
    /// the other.
    async fn look_after_runs(&self) -> Result<Option<Timestamp>> {
        let next_at = self.end_overdue_runs().await;
        self.remove_leftover_sessions().await?;
        next_at
    }

    async fn end_overdue_runs(&self) -> Result<Option<Timestamp>> {
        loop {
            let mut overdue = self.shared.store.overdue_runs(now(), BATCH).await?;
            let set_aside = &self.shared.recovery.set_aside;
            let is_held = |run: &mut RunRecord| {
                run.status == RunStatus::Running
                    && set_aside.hold_of(&run.tenant, &run.session_id) == Hold::Wait
            };
            let held = overdue.runs.extract_if(.., is_held).count();
            if overdue.runs.is_empty() {
                let again = (held > 0).then(|| now().checked_add(due::AFTER_TROUBLE).ok()).flatten();
                return Ok([overdue.next_at, again].into_iter().flatten().min());
            }
            each(overdue.runs, |run| async {
                let error = RunError::timeout(&run.given.job);
                self.end_run(run, error).await.map(drop)
            })
            .await?;
        }
    }

    async fn remove_leftover_sessions(&self) -> Result<()> {
        loop {
            let mut left = self.shared.store.leftover_sessions(BATCH).await?;
            let set_aside = &self.shared.recovery.set_aside;
            left.retain(|run| !set_aside.holds(WorkKind::Removal, &run.tenant, run.session_id.as_str()));
            if left.is_empty() {
                return Ok(());
            }
            each(left, |run| self.remove_session_of(run)).await?;
        }
    }

    async fn remove_session_of(&self, run: RunRecord) -> Result<()> {
        match self.delete_session(&run.tenant, &run.session_id).await {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        self.shared.store.delete_customer(&run.tenant, run.id.as_str()).await?;
        self.shared.store.session_is_gone(&run.id).await?;
        let set_aside = &self.shared.recovery.set_aside;
        set_aside.succeeded(WorkKind::Removal, &run.tenant, run.session_id.as_str());
        Ok(())
    }
}

/// Does something for each run, some at the same time. The first error is returned when all were tried.
async fn each<F>(runs: Vec<RunRecord>, work: impl Fn(RunRecord) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let done: Vec<Result<()>> =
        stream::iter(runs.into_iter().map(work)).buffer_unordered(AT_ONCE).collect().await;
    done.into_iter().collect()
}

async fn keep(shared: Arc<Shared>) {
    let engine = Engine { shared: Arc::clone(&shared) };
    due::keep("runs", &shared.runs.changed, &shared.closing, || engine.look_after_runs()).await;
}
