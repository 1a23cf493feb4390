//! Starts real processes, in a real sandbox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails here"
)]

mod bubblewrap;
mod confinement;
mod docker;
mod ends;
mod limits;
mod spare;
mod streams;
mod views;
mod world;

petasos_sandbox::supervisor_of_tests!();
