//! The models crate from outside: one contract for all wire formats, and what each of them sends.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(missing_docs)]

mod chat_vendors;
mod contract;
mod demo;
mod registry;
mod server;
mod support;
