//! The words of Petasos as types, and the pure middle of the system.
//!
//! A session is an append-only log of [`event::Event`]s. [`state::State`] is the fold that says where a turn
//! stands, [`context::Context`] the fold that a model reads, and [`step`] decides what is appended next.
//!
//! Nothing in this crate does I/O, reads a clock or makes an id: time and ids come in as arguments. It must
//! not know about any wire protocol, database or model vendor.

pub mod agent;
pub mod agent_option;
pub mod amendments;
mod argument_schema;
pub mod both_ends;
pub mod budget;
pub mod compaction;
pub mod context;
pub mod conversation;
pub mod customer;
pub mod delivery;
pub mod event;
pub mod export;
pub mod failed_calls;
pub mod grant;
pub mod ids;
pub mod json_schema;
pub mod key;
pub mod limits;
pub mod memory;
pub mod metadata;
pub mod model;
pub mod model_settings;
pub mod nearest;
pub mod recovery;
pub mod routine;
pub mod run;
pub mod session;
pub mod settings;
pub mod spending;
pub mod state;
pub mod step;
pub mod title;
pub mod tokens;
mod weight;

pub use event::{Event, Payload};
pub use ids::{AgentId, EventId, KeyId, SessionId, TenantId};
pub use state::State;
