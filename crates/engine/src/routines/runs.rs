//! Runs as surfaces use them: read, listed, cancelled.

use petasos_core::delivery::Delivery;
use petasos_core::ids::{RoutineId, RunId, TenantId};
use petasos_core::recovery::WorkKind;
use petasos_core::run::{RunError, RunOutcome, RunRecord, RunStatus};
use petasos_store::{DeliveryFilter, Page, PageRequest, RunEnd};

use super::callback;
use crate::actor::Command;
use crate::engine::{Engine, now};
use crate::error::{Error, Result};

impl Engine {
    /// One run as it is now.
    pub async fn run(&self, tenant: &TenantId, id: &RunId) -> Result<RunRecord> {
        let run = self.shared.store.run(tenant, id).await?;
        run.ok_or_else(|| Error::NotFound { kind: "run", id: id.to_string() })
    }

    /// The runs of a routine, newest first.
    pub async fn runs(
        &self,
        tenant: &TenantId,
        routine_id: &RoutineId,
        page: PageRequest,
    ) -> Result<Page<RunRecord>> {
        let runs = self.shared.store.runs(tenant, routine_id, page).await?;
        if runs.items.is_empty() {
            self.routine(tenant, routine_id).await?;
        }
        Ok(runs)
    }

    /// The delivery that reports a run, the newest if it was made again; none while there is none.
    pub async fn callback(&self, run: &RunRecord) -> Result<Option<Delivery>> {
        if run.given.callback_url.is_none() || !run.status.is_settled() {
            return Ok(None);
        }
        let filter = DeliveryFilter { run_id: Some(run.id.clone()), ..DeliveryFilter::default() };
        let page = PageRequest { after: None, limit: 1 };
        let found = self.shared.store.deliveries(&run.tenant, filter, page).await?;
        Ok(found.items.into_iter().next())
    }

    /// Ends a run before it ends by itself.
    pub async fn cancel_run(&self, tenant: &TenantId, id: &RunId) -> Result<RunRecord> {
        let run = self.run(tenant, id).await?;
        if self.end_run(run, RunError::cancelled()).await? {
            return self.run(tenant, id).await;
        }
        Err(Error::RunSettled { id: id.to_string() })
    }

    /// Settles a run as failed, from outside of its turn. `false` if it was settled before.
    pub(crate) async fn end_run(&self, mut run: RunRecord, error: RunError) -> Result<bool> {
        loop {
            let mut error = error.clone();
            if run.status == RunStatus::Running {
                let run_id = run.id.clone();
                let command = |reply| Command::EndRun { run_id, error: error.clone(), reply };
                match self.command(&run.tenant, &run.session_id, command).await {
                    Ok(true) => return Ok(true),
                    Ok(false) => {}
                    Err(Error::NotFound { .. }) => error = RunError::session_gone(),
                    Err(_) if self.is_damaged(&run.tenant, &run.session_id).await => {
                        error = RunError::session_damaged();
                    }
                    Err(problem) => return Err(problem),
                }
            }
            let Some(now_is) = self.shared.store.run(&run.tenant, &run.id).await? else { return Ok(false) };
            if now_is.status.is_settled() {
                return Ok(false);
            }
            // It has started in the meantime, and its log has the say.
            if now_is.status == RunStatus::Running && run.status != RunStatus::Running {
                run = now_is;
                continue;
            }
            if self.settle_outside(now_is.clone(), error).await? {
                return Ok(true);
            }
            run = now_is;
        }
    }

    /// Settles a run as failed without its session. `false` if it has moved on in the meantime.
    pub(crate) async fn settle_outside(&self, run: RunRecord, error: RunError) -> Result<bool> {
        let (from, outcome, at) = (run.status, RunOutcome::Failed { error }, now());
        let callback = callback::of(&self.shared, &run, &outcome, at);
        let end = RunEnd { id: run.id.clone(), from, outcome, at, callback };
        let is_settled = self.shared.store.end_run(end).await?;
        if is_settled {
            self.shared.recovery.set_aside.succeeded(WorkKind::Run, &run.tenant, run.id.as_str());
            self.shared.deliveries.wake();
            self.shared.runs.changed.notify_one();
        }
        Ok(is_settled)
    }
}
