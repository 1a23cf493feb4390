//! User code in Python: plugins and gateway hooks, in child processes of their own.
//!
//! A *host* is a Python process. Its *guests* are plugins and gateway hooks; guests share a host until one of them
//! misbehaves. A *keeper* keeps a host running. The host's own code is in `petasos_host/`, standard library only, and
//! is handed to the interpreter when it starts.

mod call;
mod callback;
mod frame;
mod gateway_hook;
mod guest;
mod host;
mod hosts;
mod keeper;
mod message;
mod offers;
mod orders;
mod output;
mod plugin;
mod settings;
mod wishes;
mod yaml;

pub use gateway_hook::GatewayHook;
pub use hosts::PythonHosts;
pub use offers::{PluginCliCommand, PluginCommand, PluginSkill, PluginTool, Printed};
pub use plugin::{Origin, Plugin, Selection, Status};
pub use settings::{Patience, Pauses, Python, Settings};
pub use wishes::{AgentTurn, CallTool, Caller, Gateway, OutgoingMessage, Sessions};
