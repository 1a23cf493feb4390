//! For tests only: what the fuzzers run.
//!
//! A target takes any bytes at all and panics if a promise is broken. `fuzz/` runs them under libFuzzer; the tests of
//! this crate run them on a stable toolchain over the checked-in corpus and mutations of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a target that finds something panics")]

pub mod cursors;
pub mod event_decode;
pub mod mutate;
pub mod send_events;
pub mod sse_decoder;

/// Takes one input, and panics if it breaks a promise.
pub type Target = Box<dyn Fn(&[u8])>;
