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
mod event;
mod gateway;
mod history;
pub mod python;
pub mod synthetic;

pub use bus::{Answer, Bus, Callback, Firing, OnFailure, Source};
pub use configured::{
    ConfiguredHook, ConfiguredHooks, Exchange, HookSpec, Matcher, Place, Reach, Specs, Target, arguments_of,
};
pub use consent::{Allowlist, Consent, accepts, admitted, is_yes, modified_at};
pub use contract::{
    Approval, CallStatus, Dispatch, Hooks, NoHooks, Observation, SessionRef, TerminalOutput, ToolCall,
    ToolResult, TurnInfo, TurnStart,
};
pub use event::{EventSet, HookEvent};
pub use gateway::{ChatSource, CommandVerdict, GatewayEvents, Incoming};
