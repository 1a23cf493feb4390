//! Drives the real binary from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]

mod agent_files;
mod agents;
mod approvals;
mod backup;
mod chat;
mod chat_hooks;
mod chat_lives_on;
mod commands;
mod completions;
mod connections;
mod consent;
mod crash_loops;
mod damage;
mod deliveries;
mod doctor;
mod guards;
mod hidden;
mod hook_environment;
mod hooks;
mod installation;
mod keys;
mod kill;
mod models;
mod plugins;
mod proxies;
mod reader_memory;
mod refusals;
mod routines;
mod run;
mod serve;
mod server_route;
mod sessions;
mod shell_examples;
mod sudo;
mod talker;
mod terminal;
mod traces;
mod transfer;
mod typing;
mod upgrade;
