//! The models crate from outside: one contract for all wire formats, and what each of them sends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

mod bodies;
mod chat_vendors;
mod contract;
mod demo;
mod prefix;
mod refusals;
mod registry;
mod server;
mod support;
