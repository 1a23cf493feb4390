//! Tools of MCP servers.
//!
//! A server is defined by the operator's configuration, or by an agent as a URL. Its connection is opened when its
//! tools are first needed, shared by all who use it, opened again when it is lost, and closed when it was idle for a
//! while. Whatever a server does, what comes of it is a text for the model: it may be dead, hang, flood or lie.
//!
//! No type of the MCP library is visible outside of this module. Nothing here decides what may run.

mod call;
mod connect;
mod connection;
mod definition;
mod http;
mod listing;
mod names;
mod offer;
mod output;
mod program;
mod schema;
mod servers;
mod streams;
mod warnings;

pub use definition::{Program, Reach, ServerDefinition, Settings, Tenants};
pub use offer::{Missing, Offer, OfferedTool};
pub use servers::McpServers;
