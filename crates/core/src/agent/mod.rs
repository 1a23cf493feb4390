//! Agents: versioned definitions, as they are stored and as they are written in files.

mod stored;
mod tools;
mod validate;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::agent_option::AgentOption;
use crate::ids::{AgentId, TenantId};
use crate::model_settings::ModelSettings;

pub use stored::StoredDefinition;
pub use tools::{
    NamedToolConfig, PermissionPolicy, ToolConfig, ToolEntry, Unknown, built_in_tools, is_tool_name,
};
pub use validate::InvalidDefinition;

/// One version of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentVersion {
    /// The agent.
    pub id: AgentId,
    /// Whose agent it is.
    pub tenant: TenantId,
    /// 1, 2, 3 …
    pub version: u32,
    /// What this version is.
    #[serde(with = "stored")]
    pub definition: AgentDefinition,
    /// When the agent's first version was made.
    pub created_at: Timestamp,
    /// When this version was made.
    pub updated_at: Timestamp,
    /// When the agent was archived.
    pub archived_at: Option<Timestamp>,
}

/// What an agent is: everything that a version fixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// What people call it.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// How the model is asked.
    #[serde(
        default,
        alias = "model_settings",
        deserialize_with = "or_null",
        skip_serializing_if = "ModelSettings::is_empty"
    )]
    pub model_settings: ModelSettings,
    /// The system instructions.
    #[serde(default, deserialize_with = "or_null")]
    pub instructions: String,
    /// What it may use. The built-in tools if this is left out; an empty list is no tool at all.
    #[serde(default = "built_in_tools", deserialize_with = "tools_or_null")]
    pub tools: Vec<ToolEntry>,
    /// MCP servers that `mcp_toolset` entries refer to.
    #[serde(default, deserialize_with = "or_null")]
    pub mcp_servers: Vec<McpServer>,
    /// Skills that belong to this version.
    #[serde(default, deserialize_with = "or_null")]
    pub skills: Vec<ConfiguredSkill>,
    /// What each session can choose. `{{options.name}}` in the instructions becomes the value.
    #[serde(default, deserialize_with = "or_null", skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<AgentOption>,
    /// The caller's own tags.
    #[serde(default, deserialize_with = "or_null")]
    pub metadata: Map<String, Value>,
}

/// Reads a field that may be left out: `null` says no more than that.
fn or_null<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn tools_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolEntry>, D::Error> {
    Option::deserialize(deserializer).map(|tools| tools.unwrap_or_else(built_in_tools))
}

/// An MCP server that an agent uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct McpServer {
    /// How it is reached; `url` is the only kind.
    #[serde(rename = "type")]
    pub kind: McpServerKind,
    /// Unique in the agent.
    pub name: String,
    /// The endpoint.
    pub url: String,
}

/// How an MCP server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum McpServerKind {
    /// Over HTTP.
    Url,
}

/// A skill that belongs to an agent version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConfiguredSkill {
    /// Unique in the agent.
    pub name: String,
    /// Where the text is.
    #[serde(flatten)]
    pub source: SkillSource,
}

/// Where the text of a skill is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "source", rename_all = "snake_case")]
pub enum SkillSource {
    /// In the definition.
    Inline {
        /// The text of `SKILL.md`.
        content: String,
    },
    /// In a file.
    File {
        /// Its path.
        path: String,
    },
    /// At an address.
    Url {
        /// The address.
        url: String,
    },
}
