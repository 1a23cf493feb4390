//! Routines: autonomous jobs with input and output schemas, and their runs.
//!
//! A run is a turn of a session. Its row says that it was accepted and until when it may take; everything that happens
//! in it is in the session's log, and the row follows the log in the same commit. The table of runs is also the queue:
//! a run whose session is busy waits there, over restarts too.

mod callback;
mod check;
mod cron;
pub(crate) mod emit_output;
mod keeper;
mod own_agent;
mod runs;
mod schedules;
mod schema;
mod trigger;
mod turns;
mod waiting;

use petasos_core::ids::{RoutineId, TenantId};
use petasos_core::recovery::WorkKind;
use petasos_core::routine::{RoutineDefinition, RoutineRecord};

pub use self::callback::CallbackBody;
pub use self::check::check as check_routine;
pub use self::schema::Mismatch;
pub use self::trigger::{Trigger, Triggered, fingerprint};
pub(crate) use self::turns::end_waiting_runs;
use self::waiting::Waiting;
use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// What keeps runs and schedules going.
#[derive(Default)]
pub(crate) struct Runs {
    /// Sessions that may have runs waiting for them.
    pub(crate) waiting: Waiting,
    /// Told when a run was accepted or settled.
    pub(crate) changed: tokio::sync::Notify,
    /// Told when a routine was kept or removed.
    pub(crate) rescheduled: tokio::sync::Notify,
}

/// What keeping a routine came to.
#[derive(Debug, Clone, PartialEq)]
pub enum RoutinePut {
    /// There was none of that id.
    Created(RoutineRecord),
    /// It took the place of another one, or is that one.
    Replaced(RoutineRecord),
}

impl Engine {
    /// Keeps a routine, in place of the one of the same id if there is one.
    pub async fn put_routine(
        &self,
        tenant: &TenantId,
        id: &RoutineId,
        definition: RoutineDefinition,
    ) -> Result<RoutinePut> {
        check_on_thread(&definition).await?;
        let known = self.shared.store.routine(tenant, id).await?;
        if let Some(known) = known.as_ref().filter(|known| known.definition == definition) {
            return Ok(RoutinePut::Replaced(known.clone()));
        }
        if let Some(url) = definition.schedule.as_ref().and_then(|schedule| schedule.callback_url.as_ref()) {
            self.check_callback(&definition, "schedule.callback_url", url)?;
        }
        self.prepare_agent(tenant, id, &definition).await?;
        let at = now();
        let through = known.as_ref().filter(|known| known.definition.schedule == definition.schedule);
        let routine = RoutineRecord {
            id: id.clone(),
            tenant: tenant.clone(),
            definition,
            created_at: known.as_ref().map_or(at, |known| known.created_at),
            updated_at: at,
            // Nothing is due from before a schedule was set.
            scheduled_through: through.map_or(at, |known| known.scheduled_through),
        };
        self.shared.store.put_routine(routine.clone()).await?;
        self.shared.recovery.set_aside.succeeded(WorkKind::Schedule, tenant, id.as_str());
        self.shared.runs.rescheduled.notify_one();
        Ok(if known.is_some() { RoutinePut::Replaced(routine) } else { RoutinePut::Created(routine) })
    }

    /// One routine.
    pub async fn routine(&self, tenant: &TenantId, id: &RoutineId) -> Result<RoutineRecord> {
        let routine = self.shared.store.routine(tenant, id).await?;
        routine.ok_or_else(|| not_found(id))
    }

    /// All routines of a tenant, by their ids.
    pub async fn routines(&self, tenant: &TenantId) -> Result<Vec<RoutineRecord>> {
        Ok(self.shared.store.routines(Some(tenant)).await?)
    }

    /// Removes a routine. Its runs stay, and those under way go on.
    pub async fn delete_routine(&self, tenant: &TenantId, id: &RoutineId) -> Result<()> {
        let routine = self.routine(tenant, id).await?;
        if !self.shared.store.delete_routine(tenant, id).await? {
            return Err(not_found(id));
        }
        self.shared.recovery.set_aside.succeeded(WorkKind::Schedule, tenant, id.as_str());
        self.shared.runs.rescheduled.notify_one();
        self.archive_own_agent(&routine).await
    }
}

/// Reading schemas may take a while, so it is not done on a thread that serves requests.
async fn check_on_thread(definition: &RoutineDefinition) -> Result<()> {
    let definition = definition.clone();
    let checked = schema::on_thread(move || check::check(&definition)).await;
    checked.unwrap_or_else(|| Err(check::invalid("input_schema", "could not be read in time; try again")))
}

fn not_found(id: &RoutineId) -> Error {
    Error::NotFound { kind: "routine", id: id.to_string() }
}
