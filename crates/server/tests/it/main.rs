//! The server from outside: real HTTP, real store, scripted model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod aap;
mod agents;
mod backup;
mod bad_input;
mod conversation;
mod dangers;
mod deliveries;
mod expiry;
mod faults;
mod gateway_hooks;
mod hooks;
mod hostile;
mod kept;
mod keys;
mod logs;
mod long_sessions;
mod mcp;
mod mcp_faults;
mod memory;
mod operations;
mod pauses;
mod permissions;
mod plugin_offers;
mod plugins;
mod routines;
mod session_search;
mod sessions;
mod skills;
mod spending;
mod streams;
mod threads;
mod tools;
mod transfer;
mod turns;
mod web;

petasos_sandbox::supervisor_of_tests!();
