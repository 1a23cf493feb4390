//! What the operator says about MCP servers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use petasos_core::ids::TenantId;
use secrecy::SecretString;

/// An MCP server of the configuration.
#[derive(Debug, Clone)]
pub struct ServerDefinition {
    /// How it is reached.
    pub reach: Reach,
    /// Whose agents may use it.
    pub tenants: Tenants,
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum Reach {
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, SecretString>,
    },
    /// A program that speaks on its standard input and output.
    Program(Program),
}

/// A program that is an MCP server.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: BTreeMap<String, SecretString>,
    /// Where it starts.
    pub directory: PathBuf,
}

/// Whose agents may use a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tenants {
    /// Everybody's.
    All,
    /// Those of these tenants.
    Only(Vec<TenantId>),
}

impl Tenants {
    pub(crate) fn has(&self, tenant: &TenantId) -> bool {
        match self {
            Tenants::All => true,
            Tenants::Only(tenants) => tenants.contains(tenant),
        }
    }
}

/// Bounds of all servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a session or a caller waits for a server's tools before it goes on without them.
    pub wait_time: Duration,
    /// How long a server may take until its tools are known.
    pub connect_time: Duration,
    /// How long one call may take.
    pub call_time: Duration,
    /// How long a connection is kept that nobody uses.
    pub idle_time: Duration,
    /// The most bytes of one message of a server.
    pub message_bytes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            wait_time: Duration::from_secs(5),
            connect_time: Duration::from_secs(30),
            call_time: Duration::from_secs(300),
            idle_time: Duration::from_secs(600),
            message_bytes: 4 * 1024 * 1024,
        }
    }
}
