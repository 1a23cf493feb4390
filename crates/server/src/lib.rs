//! HTTP: authentication, the surfaces, and streaming.
//!
//! A surface turns requests into calls of the engine, and events of the log into its own wire shapes. It keeps no
//! state: whatever it needs to know about a session it reads from the log. Errors become HTTP in one place,
//! [`problem`].

mod about;
mod auth;
mod backup;
mod body;
mod closed_schemas;
mod deliveries;
mod door;
#[doc(hidden)]
pub mod fuzzing;
mod health;
mod keys;
mod known_fields;
mod listen;
mod metrics;
mod object_schemas;
mod openapi;
mod page;
mod path;
mod problem;
mod query;
mod rate_limit;
mod request_id;
mod routes;
mod rows;
mod schemas;
mod server;
mod sse;
mod surfaces;
mod transfer;
mod unknown_fields;
mod unread;
mod valid_keys;
mod visit;

pub use backup::Backups;
pub use listen::MAX_CONNECTIONS;
pub use rate_limit::RateLimit;
pub use server::{Error, Options, Patience, Server};
pub use surfaces::conversation::conversation_view;
pub use surfaces::routines::callback_body;
pub use unknown_fields::UnknownFields;
