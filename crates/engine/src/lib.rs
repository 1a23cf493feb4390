//! Runs sessions.
//!
//! [`Engine`] is the door: surfaces turn requests into its calls, and read sessions through [`Reader`]. Behind it,
//! an awake session has one actor, which is its only writer: the actor feeds inputs to the pure step of
//! `petasos-core`, appends what comes of it, and carries out the effects. A session without a running turn has no
//! actor and no reader holds it in memory.
//!
//! This crate must not know any wire protocol. If the HTTP crate were deleted, everything about sessions would
//! still be here.

mod actor;
mod agents;
mod awake;
mod compact;
mod context_part;
mod customers;
mod delegate;
mod deletion;
mod deliveries;
mod dispatch;
mod due;
mod effects;
mod ended;
mod ended_calls;
mod engine;
mod error;
mod expiry;
mod export;
mod feed;
mod follow;
mod grants;
mod import;
mod injected;
mod keys;
mod load;
mod log_part;
mod mcp;
mod memory;
mod metrics;
mod model_call;
mod observed;
mod observers;
mod opening;
mod output_filter;
mod outside_results;
mod own_workspace;
mod plan;
mod plugin_agent;
mod plugin_commands;
mod plugin_tools;
mod plugin_wishes;
mod prompt;
mod reader;
mod recovery;
mod replace;
mod rest;
mod routines;
mod secrets;
mod server_tools;
mod session_search;
mod sessions;
mod skills;
mod spending;
mod surroundings;
mod tags;
mod threads;
mod tool_run;
mod turn_info;
mod warm;

pub use agents::AgentChange;
pub use context_part::ContextPart;
pub use customers::{CustomerDetail, NewCustomer};
pub use deletion::SESSION_DELETED;
pub use deliveries::{
    DeliveryCredentials, DeliveryOptions, DeliverySettings, DeliveryView, NewView, Rendered, Retries,
    TenantCredentials,
};
pub use engine::{Engine, Grace, HOOK_HEAD_START, Options, Unattended};
pub use error::{Error, Result};
pub use export::Export;
pub use grants::UserGrant;
pub use import::{ImportAs, Imported};
pub use keys::{Caller, NewKey, hash_key, new_key};
pub use log_part::{LogPart, LogRange};
pub use memory::MemorySettings;
pub use metrics::Metrics;
pub use petasos_hooks::{Hooks, NoHooks, Observation, TurnInfo};
pub use plugin_commands::CommandAnswer;
pub use plugin_tools::add_plugin_tools;
pub use reader::{Item, Live, LiveKind, Reader, Start};
pub use recovery::{RecoveryTimes, SetAsideWork};
pub use routines::{CallbackBody, Mismatch, RoutinePut, Trigger, Triggered, check_routine, fingerprint};
pub use server_tools::{ServerTool, ServerTools};
pub use sessions::{NewSession, SessionChange, SessionDetail, Submission};
pub use skills::{SkillOptions, SkillSettings};
pub use tags::TagChange;
pub use threads::ThreadRecord;
