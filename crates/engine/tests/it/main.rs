//! The engine driven directly: a real store, a scripted model, and no HTTP surface anywhere.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod argument_schemas;
mod crash_loops;
mod deletion;
mod deliveries;
mod full_store;
mod hook_changes;
mod hook_faults;
mod hook_order;
mod hook_pairs;
mod hooks;
mod memory;
mod orphans;
mod permissions;
mod prompt;
mod recovery;
mod routines;
mod sessions;
mod sleep;
mod store;
mod store_faults;
mod streaming;
mod turns;
mod world;
mod writers;
