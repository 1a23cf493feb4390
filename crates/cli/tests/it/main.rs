//! Drives the real binary from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]

mod agent_files;
mod agents;
mod backup;
mod chat;
mod chat_lives_on;
mod commands;
mod completions;
mod consent;
mod damage;
mod deliveries;
mod doctor;
mod hidden;
mod hooks;
mod installation;
mod keys;
mod kill;
mod plugins;
mod refusals;
mod routines;
mod run;
mod serve;
mod sessions;
mod talker;
mod terminal;
mod traces;
mod transfer;
mod typing;
