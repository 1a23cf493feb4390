//! API keys: what is known about a key, never the key itself.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{KeyId, TenantId};

/// What a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum KeyScope {
    /// Everything, in every tenant.
    #[serde(rename = "admin")]
    Admin,
    /// Look at agents.
    #[serde(rename = "agents:read")]
    AgentsRead,
    /// Create, change and archive agents.
    #[serde(rename = "agents:write")]
    AgentsWrite,
    /// Look at sessions and stream them.
    #[serde(rename = "sessions:read")]
    SessionsRead,
    /// Create, change and talk in sessions.
    #[serde(rename = "sessions:write")]
    SessionsWrite,
}

impl KeyScope {
    /// Every scope, in the order in which help texts list them.
    pub const ALL: [KeyScope; 5] = [
        KeyScope::Admin,
        KeyScope::AgentsRead,
        KeyScope::AgentsWrite,
        KeyScope::SessionsRead,
        KeyScope::SessionsWrite,
    ];

    /// The scope as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            KeyScope::Admin => "admin",
            KeyScope::AgentsRead => "agents:read",
            KeyScope::AgentsWrite => "agents:write",
            KeyScope::SessionsRead => "sessions:read",
            KeyScope::SessionsWrite => "sessions:write",
        }
    }
}

impl fmt::Display for KeyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope; use admin, agents:read, agents:write, sessions:read or sessions:write")]
pub struct UnknownScope(String);

impl FromStr for KeyScope {
    type Err = UnknownScope;
    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        KeyScope::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// One API key as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    /// Names the key.
    pub id: KeyId,
    /// The tenant that it opens.
    pub tenant: TenantId,
    /// What its owner calls it.
    pub name: String,
    /// What it may do.
    pub scopes: Vec<KeyScope>,
    /// SHA-256 of the key, in hexadecimal.
    pub hash: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl KeyRecord {
    /// Whether the key may do what `scope` names.
    pub fn allows(&self, scope: KeyScope) -> bool {
        self.scopes.contains(&KeyScope::Admin) || self.scopes.contains(&scope)
    }
}
