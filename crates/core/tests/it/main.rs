//! Tests of the pure middle: turns driven by random scripts, with crashes anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod properties;
mod runs;
mod scenarios;
mod world;
