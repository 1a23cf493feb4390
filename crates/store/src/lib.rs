//! Where logs, agents, keys, and what agents remember are kept.
//!
//! [`Store`] is the contract: what a write promises, and what a reader may rely on. No type of any database
//! appears in it, and [`suite`] checks every implementation against it. [`sqlite`] is the embedded default.
//!
//! This crate is the only one that opens a database. It must not decide anything about sessions: it keeps
//! what it is given, all or nothing.

mod contract;
mod error;
pub mod sqlite;
#[doc(hidden)]
pub mod suite;

pub use contract::{
    AfterAttempt, AgentStore, Append, Asleep, Attempted, Backup, Bearer, Checkpoint, Cursor, CustomerChange,
    CustomerStore, DeliveryFilter, DeliveryStore, Due, DueDelivery, DueRequest, EventBatch, EventLog,
    EventQuery, Expiring, GrantStore, IndexRecovery, Kept, KeyStore, Known, KnownValue, LOG_BATCH_BYTES,
    LastEnd, LastStart, MemoryStore, MessageHit, MessageOrder, MessageQuery, MessageRole, MessageSearch,
    NewRun, Observe, Order, Outbox, Overdue, Page, PageRequest, RecoveryStore, RoutineStore, Routines,
    RunAdded, RunEnd, RunStore, SessionFilter, SessionStore, Sessions, SkillStore, SkillWrite, StartNote,
    Stats, Store, TagStore, Undelivered, UsageStore, VariableStore, WorkFound, WorkKey, WorkRecord,
    WorkState,
};
pub use error::{Error, Result};
