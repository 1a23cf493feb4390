//! Drives the real binary from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]

mod agents;
mod installation;
mod keys;
mod refusals;
mod serve;
mod sessions;
