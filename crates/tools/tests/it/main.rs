//! The built-in tools as the engine calls them, with real files and real processes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]

mod code;
mod faults;
mod files;
mod patch;
mod processes;
mod search;
mod search_engines;
mod sudo;
mod terminal;
mod world;

petasos_sandbox::supervisor_of_tests!();
