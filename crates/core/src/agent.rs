//! Agents: versioned definitions, as they are stored and as they are written in files.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::agent_option::{self, AgentOption};
use crate::ids::{AgentId, TenantId};

/// What an agent is: everything that a version fixes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentDefinition {
    /// What people call it.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// The system instructions.
    #[serde(default)]
    pub instructions: String,
    /// What it may use. Nothing listed means the built-in tools.
    #[serde(default)]
    pub tools: Vec<ToolEntry>,
    /// MCP servers that `mcp_toolset` entries refer to.
    #[serde(default)]
    pub mcp_servers: Vec<McpServer>,
    /// Skills that belong to this version.
    #[serde(default)]
    pub skills: Vec<ConfiguredSkill>,
    /// What each session can choose. `{{options.name}}` in the instructions becomes the value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<AgentOption>,
    /// The caller's own tags.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// One entry of an agent's `tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolEntry {
    /// The built-in tools.
    #[serde(rename_all = "camelCase")]
    AgentToolset {
        /// For every tool of the set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default_config: Option<ToolConfig>,
        /// For single tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        configs: Vec<NamedToolConfig>,
    },
    /// The tools of one MCP server.
    #[serde(rename_all = "camelCase")]
    McpToolset {
        /// A name in `mcpServers`.
        mcp_server_name: String,
        /// For every tool of the server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        default_config: Option<ToolConfig>,
        /// For single tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        configs: Vec<NamedToolConfig>,
    },
    /// A tool that the application runs.
    #[serde(rename_all = "camelCase")]
    CustomTool {
        /// What the model calls.
        name: String,
        /// What it does, for the model.
        #[serde(default)]
        description: String,
        /// JSON Schema of its arguments.
        #[serde(default = "any_object", alias = "input_schema")]
        input_schema: Value,
    },
}

fn any_object() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Settings of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolConfig {
    /// Whether it asks before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_policy: Option<PermissionPolicy>,
}

/// Settings of one named tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NamedToolConfig {
    /// The tool.
    pub name: String,
    /// Whether it asks before it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_policy: Option<PermissionPolicy>,
}

/// Whether a tool asks before it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PermissionPolicy {
    /// It runs by itself.
    AlwaysAllow,
    /// It waits for a confirmation.
    AlwaysAsk,
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

/// A definition that cannot be used, with the field to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidDefinition {
    /// The field, as a path.
    pub field: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

const MAX_NAME: usize = 256;
const MAX_INSTRUCTIONS: usize = 1_000_000;
const MAX_TOOL_ENTRIES: usize = 128;
const MAX_MCP_SERVERS: usize = 20;
const MAX_SKILLS: usize = 100;
/// The most keys that metadata of an agent or session may have.
pub const MAX_METADATA_KEYS: usize = 64;
/// The most bytes that metadata may have as JSON.
pub const MAX_METADATA_BYTES: usize = 64 * 1024;

/// Says what is wrong with metadata, if anything.
pub fn metadata_problem(metadata: &Map<String, Value>) -> Option<String> {
    if metadata.len() > MAX_METADATA_KEYS {
        return Some(format!("has {} keys; at most {MAX_METADATA_KEYS} are allowed", metadata.len()));
    }
    let bytes = Value::Object(metadata.clone()).to_string().len();
    (bytes > MAX_METADATA_BYTES)
        .then(|| format!("has {bytes} bytes as JSON; at most {MAX_METADATA_BYTES} are allowed"))
}

impl AgentDefinition {
    /// Checks everything that the types do not.
    pub fn validate(&self) -> Result<(), InvalidDefinition> {
        let fail = |field: String, problem: String| Err(InvalidDefinition { field, problem });
        if self.name.trim().is_empty() || self.name.chars().count() > MAX_NAME {
            return fail("name".into(), format!("must be 1 to {MAX_NAME} characters"));
        }
        if !self
            .model
            .split_once('/')
            .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
        {
            let problem = format!("{:?} is not provider/model, for example demo/echo", self.model);
            return fail("model".into(), problem);
        }
        for (field, count, most) in [
            ("instructions", self.instructions.chars().count(), MAX_INSTRUCTIONS),
            ("tools", self.tools.len(), MAX_TOOL_ENTRIES),
            ("mcpServers", self.mcp_servers.len(), MAX_MCP_SERVERS),
            ("skills", self.skills.len(), MAX_SKILLS),
        ] {
            if count > most {
                return fail(
                    field.into(),
                    format!("has {count} entries or characters; at most {most} are allowed"),
                );
            }
        }
        if let Some(problem) = metadata_problem(&self.metadata) {
            return fail("metadata".into(), problem);
        }
        if let Some((field, problem)) = agent_option::options_problem(&self.options) {
            return fail(field, problem);
        }
        self.validate_names()
    }

    fn validate_names(&self) -> Result<(), InvalidDefinition> {
        let fail = |field: String, problem: String| Err(InvalidDefinition { field, problem });
        let mut servers = BTreeSet::new();
        for (index, server) in self.mcp_servers.iter().enumerate() {
            if !servers.insert(server.name.as_str()) {
                let problem = format!("{:?} is used twice", server.name);
                return fail(format!("mcpServers[{index}].name"), problem);
            }
        }
        let mut custom = BTreeSet::new();
        for (index, entry) in self.tools.iter().enumerate() {
            match entry {
                ToolEntry::AgentToolset { .. } | ToolEntry::McpToolset { .. } => {}
                ToolEntry::CustomTool { name, input_schema, .. } => {
                    if !is_tool_name(name) {
                        let problem = format!("{name:?} must be 1 to 64 letters, digits, '_' or '-'");
                        return fail(format!("tools[{index}].name"), problem);
                    }
                    if !custom.insert(name.as_str()) {
                        return fail(format!("tools[{index}].name"), format!("{name:?} is used twice"));
                    }
                    if !input_schema.is_object() {
                        let problem = "must be a JSON Schema object".to_owned();
                        return fail(format!("tools[{index}].inputSchema"), problem);
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that every `mcp_toolset` names a server: one of this definition, or one that the server's own
    /// configuration has.
    pub fn validate_toolsets(&self, is_configured: impl Fn(&str) -> bool) -> Result<(), InvalidDefinition> {
        let is_own = |name: &str| self.mcp_servers.iter().any(|server| server.name == name);
        for (index, entry) in self.tools.iter().enumerate() {
            if let ToolEntry::McpToolset { mcp_server_name: name, .. } = entry
                && !is_own(name)
                && !is_configured(name)
            {
                return Err(InvalidDefinition {
                    field: format!("tools[{index}].mcpServerName"),
                    problem: format!(
                        "{name:?} is not the name of an entry of mcpServers, nor of one of the server's configuration"
                    ),
                });
            }
        }
        Ok(())
    }

    /// The MCP servers whose tools are on offer, each once.
    pub fn mcp_toolsets(&self) -> impl Iterator<Item = &str> {
        let names = self.tools.iter().map(|entry| match entry {
            ToolEntry::McpToolset { mcp_server_name, .. } => Some(mcp_server_name.as_str()),
            _ => None,
        });
        let names: BTreeSet<&str> = names.flatten().collect();
        names.into_iter()
    }

    /// What the definition says about asking before a tool of an MCP server runs. `names` are the tool's own name and
    /// the one that the model uses.
    pub fn mcp_policy(&self, server: &str, names: &[&str]) -> Option<PermissionPolicy> {
        self.tools.iter().find_map(|entry| match entry {
            ToolEntry::McpToolset { mcp_server_name, default_config, configs }
                if mcp_server_name == server =>
            {
                policy(default_config.as_ref(), configs, names)
            }
            _ => None,
        })
    }

    /// The tools that the application runs.
    pub fn custom_tools(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.tools.iter().filter_map(|entry| match entry {
            ToolEntry::CustomTool { name, description, input_schema } => {
                Some((name.as_str(), description.as_str(), input_schema))
            }
            _ => None,
        })
    }

    /// Whether the built-in tools are on offer: they are unless `tools` lists only others.
    pub fn has_builtin_tools(&self) -> bool {
        self.tools.is_empty()
            || self.tools.iter().any(|entry| matches!(entry, ToolEntry::AgentToolset { .. }))
    }

    /// What the definition says about asking before a built-in tool runs. `names` are the tool and its aliases.
    pub fn builtin_policy(&self, names: &[&str]) -> Option<PermissionPolicy> {
        self.tools.iter().find_map(|entry| match entry {
            ToolEntry::AgentToolset { default_config, configs } => {
                policy(default_config.as_ref(), configs, names)
            }
            _ => None,
        })
    }
}

fn policy(
    default: Option<&ToolConfig>,
    configs: &[NamedToolConfig],
    names: &[&str],
) -> Option<PermissionPolicy> {
    let named = configs.iter().find(|config| names.contains(&config.name.as_str()));
    named
        .and_then(|config| config.permission_policy)
        .or_else(|| default.and_then(|config| config.permission_policy))
}

/// Whether every model takes this as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

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
    pub definition: AgentDefinition,
    /// When the agent's first version was made.
    pub created_at: Timestamp,
    /// When this version was made.
    pub updated_at: Timestamp,
    /// When the agent was archived.
    pub archived_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(value: Value) -> AgentDefinition {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_full_definition_reads_and_validates() {
        let agent = definition(json!({
            "name": "Helper", "model": "anthropic/claude", "instructions": "Be kind.",
            "mcpServers": [{ "type": "url", "name": "media", "url": "https://host/mcp" }],
            "tools": [
                { "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": "always_allow" } },
                  "configs": [{ "name": "shell", "permissionPolicy": { "type": "always_ask" } }] },
                { "type": "mcp_toolset", "mcpServerName": "media" },
                { "type": "custom_tool", "name": "check_order", "input_schema": { "type": "object" } },
            ],
            "skills": [{ "name": "draw", "source": "inline", "content": "text" }],
            "metadata": { "area": "media" },
        }));
        assert_eq!(agent.validate(), Ok(()));
        assert!(agent.has_builtin_tools());
        assert_eq!(agent.builtin_policy(&["terminal", "shell"]), Some(PermissionPolicy::AlwaysAsk));
        assert_eq!(agent.builtin_policy(&["read_file"]), Some(PermissionPolicy::AlwaysAllow));
        assert_eq!(agent.custom_tools().count(), 1);
        let again: AgentDefinition = definition(serde_json::to_value(&agent).unwrap());
        assert_eq!(again, agent);
    }

    #[test]
    fn the_error_names_the_field() {
        let problem = |value| definition(value).validate().unwrap_err().field;
        assert_eq!(problem(json!({ "name": " ", "model": "a/b" })), "name");
        assert_eq!(problem(json!({ "name": "a", "model": "gpt" })), "model");
        let twice = json!([{ "type": "custom_tool", "name": "x" }, { "type": "custom_tool", "name": "x" }]);
        assert_eq!(problem(json!({ "name": "a", "model": "a/b", "tools": twice })), "tools[1].name");
    }

    #[test]
    fn toolsets_of_mcp_servers_name_a_server_and_have_policies() {
        let agent = definition(json!({
            "name": "a", "model": "a/b",
            "mcpServers": [{ "type": "url", "name": "own", "url": "https://host/mcp" }],
            "tools": [
                { "type": "mcp_toolset", "mcpServerName": "own",
                  "defaultConfig": { "permissionPolicy": { "type": "always_allow" } },
                  "configs": [{ "name": "delete", "permissionPolicy": { "type": "always_ask" } }] },
                { "type": "mcp_toolset", "mcpServerName": "other" },
            ],
        }));
        let field = |error: InvalidDefinition| error.field;
        assert_eq!(
            agent.validate_toolsets(|_| false).map_err(field),
            Err("tools[1].mcpServerName".to_owned())
        );
        assert_eq!(agent.validate_toolsets(|name| name == "other"), Ok(()));
        assert_eq!(agent.mcp_toolsets().collect::<Vec<_>>(), ["other", "own"]);
        let (ask, allow) = (Some(PermissionPolicy::AlwaysAsk), Some(PermissionPolicy::AlwaysAllow));
        assert_eq!(agent.mcp_policy("own", &["delete", "mcp_own_delete"]), ask);
        assert_eq!(agent.mcp_policy("own", &["read", "mcp_own_read"]), allow);
        assert_eq!(agent.mcp_policy("other", &["read", "mcp_other_read"]), None);
    }
}
