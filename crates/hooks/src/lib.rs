//! User code at the points of a turn.
//!
//! The engine tells and asks [`Hooks`]; the [`Bus`] is what carries that out. It runs the callbacks of its
//! [`Source`]s, one after another, and holds every rule that does not depend on what a callback is written in: which
//! block wins, how contexts are joined, how long a callback may take, what a failure means and how often it is told.
//! A source only knows how to call.
//!
//! This crate must not know how a turn works, and starts no process and dials nobody except through `sandbox` and
//! `net`.

mod answers;
mod arguments;
mod bus;
mod complaints;
mod configured;
mod consent;
mod contract;
mod environment;
mod event;
mod gateway;
mod history;
mod no_hooks;
mod observation;
pub mod python;
mod source;
pub mod synthetic;

pub use arguments::json_result;
pub use bus::Bus;
pub use configured::{
    ConfiguredHook, ConfiguredHooks, Exchange, HookDirectory, HookFailure, HookSpec, Matcher, MissingGuard,
    Place, Reach, Specs, Target, Unavailable, arguments_of,
};
pub use consent::{Admission, Allowlist, Consent, accepts, admitted, is_yes};
pub use contract::{Dispatch, Hooks, SessionRef, TerminalOutput, ToolCall, ToolResult, TurnInfo, TurnStart};
pub use environment::hook_environment;
pub use event::{EventSet, HookEvent};
pub use gateway::{ChatSource, CommandVerdict, GatewayEvents, Incoming, UsedTool};
pub use no_hooks::NoHooks;
pub use observation::{Approval, CallStatus, Observation};
pub use source::{Answer, Callback, Firing, OnFailure, Source};
