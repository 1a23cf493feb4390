//! Routines and their runs.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::customer::Customer;
use petasos_core::delivery::NewDelivery;
use petasos_core::ids::{RoutineId, RunId, SessionId, TenantId};
use petasos_core::routine::RoutineRecord;
use petasos_core::run::{RunOutcome, RunRecord, RunStatus};
use petasos_core::session::SessionRecord;

use super::{Page, PageRequest};
use crate::error::Result;

/// Definitions of routines.
pub trait RoutineStore: Send + Sync + 'static {
    /// Keeps a routine, in place of the one of the same id if there is one, whose `created_at` stays.
    fn put_routine(&self, routine: RoutineRecord) -> BoxFuture<'_, Result<()>>;

    /// One routine of a tenant.
    fn routine<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
    ) -> BoxFuture<'a, Result<Option<RoutineRecord>>>;

    /// All routines of a tenant, by their ids; those of all tenants if none is named.
    fn routines<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<RoutineRecord>>>;

    /// Removes a routine. Its runs stay. `false` if there was none.
    fn delete_routine<'a>(&'a self, tenant: &'a TenantId, id: &'a RoutineId) -> BoxFuture<'a, Result<bool>>;

    /// Notes that every due time of a routine's schedule up to this one has been dealt with. A routine that is gone
    /// needs no note.
    fn scheduled_through<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a RoutineId,
        through: Timestamp,
    ) -> BoxFuture<'a, Result<()>>;
}

/// A run to be kept, with what comes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// The run.
    pub run: RunRecord,
    /// The session that is made for it.
    pub session: Option<SessionRecord>,
    /// The customer that is made for it.
    pub customer: Option<Customer>,
    /// What reports it, if it is settled already.
    pub callback: Option<NewDelivery>,
}

/// What became of a new run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunAdded {
    /// It is there, and so is its session.
    Added,
    /// The routine has another run under this key. Nothing was kept.
    Known(Box<RunRecord>),
}

/// A run that is settled outside of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    /// The run.
    pub id: RunId,
    /// The only status in which it may be.
    pub from: RunStatus,
    /// What came of it.
    pub outcome: RunOutcome,
    /// When.
    pub at: Timestamp,
    /// What reports it.
    pub callback: Option<NewDelivery>,
}

/// Runs whose time is up.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Overdue {
    /// The runs, longest overdue first.
    pub runs: Vec<RunRecord>,
    /// When the time of the next one is up; none if there is none.
    pub next_at: Option<Timestamp>,
}

/// Runs. [`EventLog::append`](super::EventLog::append) moves them on: `run.opened` makes an accepted run a running one,
/// and is refused with `NotFound` if there is none that waits; `run.settled` settles it, unless it is settled already.
/// Runs outlive their sessions.
pub trait RunStore: Send + Sync + 'static {
    /// Keeps a run with what comes with it, all or nothing.
    fn add_run(&self, new: NewRun) -> BoxFuture<'_, Result<RunAdded>>;

    /// One run of a tenant.
    fn run<'a>(&'a self, tenant: &'a TenantId, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>>>;

    /// The run that a routine has under a key.
    fn run_by_key<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<RunRecord>>>;

    /// The runs of a routine, newest first.
    fn runs<'a>(
        &'a self,
        tenant: &'a TenantId,
        routine_id: &'a RoutineId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<RunRecord>>>;

    /// The accepted runs of a session, oldest first.
    fn waiting_runs<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Vec<RunRecord>>>;

    /// Every run that is not settled, whoever owns it: what a restart has to look after.
    fn unsettled_runs(&self) -> BoxFuture<'_, Result<Vec<RunRecord>>>;

    /// At most `limit` runs whose time is up, whoever owns them.
    fn overdue_runs(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Overdue>>;

    /// Settles a run outside of a log. `false` if it is not in the status that was expected.
    fn end_run(&self, end: RunEnd) -> BoxFuture<'_, Result<bool>>;

    /// At most `limit` settled runs whose own session is still there, and whose callback is not pending.
    fn leftover_sessions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<RunRecord>>>;

    /// Notes that the session of a run is gone.
    fn session_is_gone<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<()>>;
}
