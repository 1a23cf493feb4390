//! The contract that every store keeps.
//!
//! Three promises hold everywhere. A write that returned `Ok` survives a crash of the process and of the
//! machine. A write is seen whole or not at all. A page that follows a cursor repeats nothing and skips
//! nothing that was there when the first page was read, however many rows were added since.

mod customers;
mod delivery;
mod memory;
mod recovery;
mod routine;
mod search;
mod skills;
mod tags;

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use jiff::civil::Date;
use petasos_core::agent::AgentVersion;
use petasos_core::event::Event;
use petasos_core::ids::{AgentId, KeyId, SessionId, TenantId};
use petasos_core::key::KeyRecord;
use petasos_core::session::{SessionRecord, SessionView, Status};
use petasos_core::spending::DailyUsage;

pub use self::customers::{CustomerChange, CustomerStore, KnownValue, VariableStore};
pub use self::delivery::{
    AfterAttempt, Attempted, DeliveryFilter, DeliveryStore, Due, DueDelivery, DueRequest, Outbox, Undelivered,
};
pub use self::memory::MemoryStore;
pub use self::recovery::{
    IndexRecovery, LastEnd, LastStart, RecoveryStore, StartNote, WorkFound, WorkKey, WorkRecord, WorkState,
};
pub use self::routine::{NewRun, Overdue, RoutineStore, RunAdded, RunEnd, RunStore};
pub use self::search::{MessageHit, MessageOrder, MessageQuery, MessageRole, MessageSearch};
pub use self::skills::{SkillStore, SkillWrite};
pub use self::tags::{Bearer, TagStore};
use crate::error::Result;

/// A store: agents, sessions, their logs, keys and grants, what agents keep for users, what they used, customers,
/// routines with their runs, and what is on its way out.
pub trait Store:
    Sessions + Kept + Known + Routines + KeyStore + UsageStore + DeliveryStore + RecoveryStore + Observe
{
}

impl<S> Store for S where
    S: Sessions + Kept + Known + Routines + KeyStore + UsageStore + DeliveryStore + RecoveryStore + Observe
{
}

/// Agents, sessions and their logs.
pub trait Sessions: AgentStore + SessionStore + EventLog + MessageSearch {}

impl<S: AgentStore + SessionStore + EventLog + MessageSearch> Sessions for S {}

/// Routines and their runs.
pub trait Routines: RoutineStore + RunStore {}

impl<S: RoutineStore + RunStore> Routines for S {}

/// What agents keep for users across sessions.
pub trait Kept: GrantStore + MemoryStore + SkillStore {}

impl<S: GrantStore + MemoryStore + SkillStore> Kept for S {}

/// Customers, and what is known about them.
pub trait Known: CustomerStore + VariableStore + TagStore {}

impl<S: CustomerStore + VariableStore + TagStore> Known for S {}

/// What a store has done since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Transactions that were made durable.
    pub commits: u64,
    /// Writes in them; many share one.
    pub writes: u64,
    /// Writes that wait for their turn now.
    pub waiting: u64,
}

/// What can be seen of a store at work.
pub trait Observe: Send + Sync + 'static {
    /// What it has done since it was opened.
    fn stats(&self) -> Stats;

    /// Why it takes no writes now, if the last ones failed for a reason that concerns all of them.
    fn problem(&self) -> Option<String>;
}

/// Copies of everything in a store, made while it is in use.
///
/// This is no part of [`Store`]: a store that is a server of its own comes with its own way to do this.
pub trait Backup: Send + Sync + 'static {
    /// Writes a copy to a file that is not there yet, and returns its size. The copy is of one moment and holds every
    /// write that was acknowledged before this was called. There is no file before all of it is on the disk.
    /// `AlreadyExists` if the file is there, `BackupUnderWay` if another copy is being made.
    fn backup(&self, to: PathBuf) -> BoxFuture<'_, Result<u64>>;
}

/// Where a listing goes on. Opaque to everyone but the store that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Which part of a listing is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Go on after this; none for the first page.
    pub after: Option<Cursor>,
    /// At most this many.
    pub limit: usize,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
}

/// Versioned agents.
pub trait AgentStore: Send + Sync + 'static {
    /// Keeps version 1 of a new agent. `AlreadyExists` if the tenant has an agent of that id.
    fn create_agent(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>>;

    /// Keeps the next version of an agent. `Stale` unless the newest one is `agent.version - 1`, `NotFound` if
    /// there is none. `created_at` and `archived_at` of the agent stay as they are.
    fn add_agent_version(&self, agent: AgentVersion) -> BoxFuture<'_, Result<()>>;

    /// The newest version of an agent, or the one asked for.
    fn agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        version: Option<u32>,
    ) -> BoxFuture<'a, Result<Option<AgentVersion>>>;

    /// The newest versions of a tenant's agents, newest agent first, archived ones left out.
    fn agents<'a>(
        &'a self,
        tenant: &'a TenantId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>>;

    /// All versions of one agent, newest first.
    fn agent_versions<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<AgentVersion>>>;

    /// Archives an agent, or brings it back with `None`. `NotFound` if there is none.
    fn archive_agent<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a AgentId,
        at: Option<Timestamp>,
    ) -> BoxFuture<'a, Result<()>>;
}

/// Which sessions are wanted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionFilter {
    /// Only those of this agent.
    pub agent_id: Option<AgentId>,
    /// Only those of this user.
    pub user_id: Option<String>,
    /// Only those without a user.
    pub without_user: bool,
    /// Only those with this status.
    pub status: Option<Status>,
    /// Only those whose metadata has all of these. A value that is not a string matches by its JSON text.
    pub metadata: Vec<(String, String)>,
    /// Archived ones too, which are otherwise left out.
    pub include_archived: bool,
    /// Archived ones only.
    pub only_archived: bool,
    /// Those of subagents too, which are otherwise left out.
    pub include_threads: bool,
    /// Oldest first; newest first otherwise.
    pub oldest_first: bool,
}

/// A session with everything that going on with it takes, as of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Asleep {
    /// The session.
    pub record: SessionRecord,
    /// The version of the agent that it stays with; none if that is gone.
    pub agent: Option<AgentVersion>,
    /// The newest fold that was stored with an append.
    pub checkpoint: Option<Checkpoint>,
    /// The first events after the checkpoint, oldest first; those of the whole log if there is none.
    pub events: EventBatch,
}

/// A session that waits for somebody only until a certain time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiring {
    /// Whose session it is.
    pub tenant: TenantId,
    /// The session.
    pub session_id: SessionId,
    /// Until when it waits.
    pub at: Timestamp,
}

/// Sessions without their logs.
pub trait SessionStore: Send + Sync + 'static {
    /// Keeps a new session with an empty log.
    fn create_session(&self, session: SessionRecord) -> BoxFuture<'_, Result<()>>;

    /// Keeps a session that was made elsewhere together with its log, all or nothing. `AlreadyExists` if any tenant has
    /// a session of that id. The log begins at sequence 1, and everything that is true of an append holds.
    fn import_session(&self, session: SessionRecord, log: Append) -> BoxFuture<'_, Result<()>>;

    /// One session of a tenant.
    fn session<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionRecord>>>;

    /// One session of a tenant with what it takes to go on with it, and at most `limit` events.
    fn asleep<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a SessionId,
        limit: usize,
    ) -> BoxFuture<'a, Result<Option<Asleep>>>;

    /// A tenant's sessions, in the order that the filter names.
    fn sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<SessionRecord>>>;

    /// How many sessions of a tenant a filter lets through.
    fn count_sessions<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: SessionFilter,
    ) -> BoxFuture<'a, Result<u64>>;

    /// Removes a session and its log for good. `false` if there was none.
    fn delete_session<'a>(&'a self, tenant: &'a TenantId, id: &'a SessionId) -> BoxFuture<'a, Result<bool>>;

    /// Every session whose turn is under way, whoever owns it: what a restart has to pick up.
    fn running_sessions(&self) -> BoxFuture<'_, Result<Vec<(TenantId, SessionId)>>>;

    /// The sessions of all tenants that wait for somebody only until a certain time, those with the least time first.
    fn expiring_sessions(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Expiring>>>;
}

/// Events to append to one log, with everything that must be true when they are.
#[derive(Debug, Clone, PartialEq)]
pub struct Append {
    /// The session.
    pub session_id: SessionId,
    /// The sequence of the last event that the writer knows of.
    pub expected_sequence: u64,
    /// The events, numbered from `expected_sequence + 1` on. User events that one of them takes up
    /// (`Payload::takes_up`) get its `created_at` as their `processed_at`. A `user.tool_confirmation` that
    /// allows its tool with scope `always` also adds a grant for the session's agent and user (a session without a
    /// user has none to add it to).
    pub events: Vec<Event>,
    /// The session as it is after these events.
    pub view: SessionView,
    /// A fold of the log up to these events, to start from next time.
    pub checkpoint: Option<Vec<u8>>,
    /// What becomes of the session's deliveries.
    pub outbox: Outbox,
}

/// A stored fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last event that it contains.
    pub sequence: u64,
    /// Whatever the engine put there.
    pub state: Vec<u8>,
}

/// Oldest or newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Oldest first.
    #[default]
    Ascending,
    /// Newest first.
    Descending,
}

/// Which events are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventQuery {
    /// Only those with a higher sequence.
    pub after: Option<u64>,
    /// Only those with a lower sequence.
    pub before: Option<u64>,
    /// Only these type names; empty for all.
    pub types: Vec<String>,
    /// Oldest or newest first.
    pub order: Order,
    /// At most this many.
    pub limit: usize,
    /// At most this many bytes of them, as they are stored; but always one.
    pub max_bytes: usize,
}

/// The most bytes of a log that are worth having in memory at once where it is read from one end to the other.
pub const LOG_BATCH_BYTES: usize = 1024 * 1024;

/// Events that were read at once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EventBatch {
    /// The events, in the order that was asked for.
    pub events: Vec<Event>,
    /// Whether reading stopped at a bound, so that there may be more after the last of them.
    pub has_more: bool,
}

/// The logs of sessions.
pub trait EventLog: Send + Sync + 'static {
    /// Appends events, all or nothing. `Stale` if the log does not end at `expected_sequence`, `NotFound` if the
    /// session is gone.
    fn append(&self, append: Append) -> BoxFuture<'_, Result<()>>;

    /// Reads a part of a log, as much of it as the query lets through at once. A session that is gone has no events.
    fn events<'a>(
        &'a self,
        session_id: &'a SessionId,
        query: EventQuery,
    ) -> BoxFuture<'a, Result<EventBatch>>;

    /// The events of a log that change what others say: deletions and metadata, oldest first. Hardly any log has some.
    fn amendments<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Vec<Event>>>;

    /// The newest fold that was stored with an append.
    fn checkpoint<'a>(&'a self, session_id: &'a SessionId) -> BoxFuture<'a, Result<Option<Checkpoint>>>;
}

/// What agents used. Counted by [`EventLog::append`] from the model calls that ended.
pub trait UsageStore: Send + Sync + 'static {
    /// What an agent used from one day to another, both included, oldest first. Days on which it used nothing are
    /// left out. Sessions that are gone still count; sessions that were imported never do.
    fn agent_usage<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        from: Date,
        to: Date,
    ) -> BoxFuture<'a, Result<Vec<DailyUsage>>>;
}

/// API keys, by the hash of the key.
pub trait KeyStore: Send + Sync + 'static {
    /// Keeps a new key.
    fn create_key(&self, key: KeyRecord) -> BoxFuture<'_, Result<()>>;

    /// The key with this hash, revoked or not.
    fn key_by_hash<'a>(&'a self, hash: &'a str) -> BoxFuture<'a, Result<Option<KeyRecord>>>;

    /// All keys, of one tenant or of all, newest first.
    fn keys<'a>(&'a self, tenant: Option<&'a TenantId>) -> BoxFuture<'a, Result<Vec<KeyRecord>>>;

    /// Revokes a key. `NotFound` if there is none; revoking twice keeps the first time.
    fn revoke_key<'a>(&'a self, id: &'a KeyId, at: Timestamp) -> BoxFuture<'a, Result<()>>;
}

/// Tools that a user allowed an agent for good. Made by [`EventLog::append`].
pub trait GrantStore: Send + Sync + 'static {
    /// The tools that this agent may use for this user without asking.
    fn grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>>>;

    /// The grants of all users of an agent, each with its user, in the order of users.
    fn agent_grants<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>>;

    /// Takes a grant back. `false` if there was none.
    fn revoke_grant<'a>(
        &'a self,
        tenant: &'a TenantId,
        agent_id: &'a AgentId,
        user_id: &'a str,
        tool: &'a str,
    ) -> BoxFuture<'a, Result<bool>>;
}
