//! What a process that starts has to know about those before it: how the last one ended, and what was under way then.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::WorkKind;

use crate::error::Result;

/// Names a piece of work.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkKey {
    /// What kind of work it is.
    pub kind: WorkKind,
    /// Whose it is.
    pub tenant: TenantId,
    /// The id of a session, a run, a routine or a delivery, as the kind says.
    pub id: String,
}

/// Work that is under way, or due, as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFound {
    /// The work.
    pub key: WorkKey,
    /// The session that it is about, if there is one.
    pub session_id: Option<SessionId>,
    /// Where it stands. Another position means that it made progress.
    pub position: String,
}

/// What is decided about a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// The process died while it was under way, not often enough to do something about it.
    Counted,
    /// A tool call whose outcome the model is told to be unknown.
    Told,
    /// It waits until it is tried by itself.
    Waiting,
    /// It is being tried by itself.
    Trying,
    /// The process died while it was tried. Its turn is being ended.
    Ending,
    /// It is not tried again.
    GivenUp,
}

/// A piece of work as the last process recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkRecord {
    /// The work, and where it stood.
    pub found: WorkFound,
    /// How many processes in a row died soon after their start while it stood there.
    pub starts: u32,
    /// What was decided about it.
    pub state: WorkState,
    /// Whether the model was told that the outcome of a call of the same turn is unknown.
    pub told_before: bool,
    /// Since when it is in this state.
    pub since: Timestamp,
}

/// How a process ended, as far as the next one can know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastEnd {
    /// It stopped in good order, or there was none.
    Clean,
    /// It died, and had been up for a good while.
    DiedLate,
    /// It died soon after its start.
    DiedEarly,
}

/// What the last process left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastStart {
    /// How it ended.
    pub end: LastEnd,
    /// The work that it recorded.
    pub work: Vec<WorkRecord>,
}

/// What a process that is up can say about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartNote {
    /// It has been up for a good while.
    Outlived,
    /// It stops in good order.
    StopsCleanly,
}

/// The index of messages, when processes died over and over while it was fed.
pub trait IndexRecovery: Send + Sync + 'static {
    /// Whether messages wait that are not indexed by themselves any more.
    fn index_is_set_aside(&self) -> BoxFuture<'_, Result<bool>>;

    /// Indexes them one by one. A message that the process died of when it was alone is left out.
    fn index_one_by_one(&self) -> BoxFuture<'_, Result<()>>;
}

/// Starts of processes, and the work that they picked up. Nothing here is written while a session works.
pub trait RecoveryStore: IndexRecovery {
    /// What the last process left. Records that cannot be read are left out.
    fn last_start(&self) -> BoxFuture<'_, Result<LastStart>>;

    /// What is under way or due, read without looking into logs and bodies, at most `limit` of a kind: running
    /// sessions, sessions whose wait is over, accepted runs, sessions that runs left behind, and due deliveries.
    fn work_under_way(&self, now: Timestamp, limit: usize) -> BoxFuture<'_, Result<Vec<WorkFound>>>;

    /// Notes that a process starts, in place of the last one, and the work that it has to keep in mind.
    fn record_start(&self, at: Timestamp, work: Vec<WorkRecord>) -> BoxFuture<'_, Result<()>>;

    /// Notes something about the process that runs.
    fn note_start(&self, note: StartNote) -> BoxFuture<'_, Result<()>>;

    /// Keeps a record of work, in place of an earlier one.
    fn keep_work(&self, record: WorkRecord) -> BoxFuture<'_, Result<()>>;

    /// Forgets the record of a piece of work.
    fn forget_work(&self, key: WorkKey) -> BoxFuture<'_, Result<()>>;
}
