//! What an agent may use: the entries of its `tools`, and what they say about single tools.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::AgentDefinition;

/// One entry of an agent's `tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolEntry {
    /// The built-in tools.
    #[serde(rename_all = "camelCase")]
    AgentToolset {
        /// For every tool of the set.
        #[serde(default, alias = "default_config", skip_serializing_if = "Option::is_none")]
        default_config: Option<ToolConfig>,
        /// For single tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        configs: Vec<NamedToolConfig>,
        /// What means nothing here.
        #[serde(flatten, skip_serializing)]
        #[cfg_attr(feature = "schema", schemars(skip))]
        unknown: Unknown,
    },
    /// The tools of one MCP server.
    #[serde(rename_all = "camelCase")]
    McpToolset {
        /// A name in `mcpServers`.
        #[serde(alias = "mcp_server_name")]
        mcp_server_name: String,
        /// For every tool of the server.
        #[serde(default, alias = "default_config", skip_serializing_if = "Option::is_none")]
        default_config: Option<ToolConfig>,
        /// For single tools.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        configs: Vec<NamedToolConfig>,
        /// What means nothing here.
        #[serde(flatten, skip_serializing)]
        #[cfg_attr(feature = "schema", schemars(skip))]
        unknown: Unknown,
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
        /// What means nothing here.
        #[serde(flatten, skip_serializing)]
        #[cfg_attr(feature = "schema", schemars(skip))]
        unknown: Unknown,
    },
}

/// Fields that a caller sent and that mean nothing. A definition that has any is refused when it is made; they are not
/// stored, and one that is read from the store is not refused for them.
pub type Unknown = Map<String, Value>;

/// The tools of an agent whose definition does not list any.
pub fn built_in_tools() -> Vec<ToolEntry> {
    vec![ToolEntry::AgentToolset { default_config: None, configs: Vec::new(), unknown: Unknown::new() }]
}

fn any_object() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Settings of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolConfig {
    /// Whether the model has it; it does unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether it asks before it runs.
    #[serde(default, alias = "permission_policy", skip_serializing_if = "Option::is_none")]
    pub permission_policy: Option<PermissionPolicy>,
    /// What means nothing here.
    #[serde(flatten, skip_serializing)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub unknown: Unknown,
}

/// Settings of one named tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NamedToolConfig {
    /// The tool.
    pub name: String,
    /// What holds for it.
    #[serde(flatten)]
    pub config: ToolConfig,
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

impl AgentDefinition {
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
            ToolEntry::McpToolset { mcp_server_name, default_config, configs, .. }
                if mcp_server_name == server =>
            {
                setting(default_config.as_ref(), configs, names, |config| config.permission_policy)
            }
            _ => None,
        })
    }

    /// Whether the model has a tool of an MCP server. `names` are the tool's own name and the one that the model uses.
    pub fn has_mcp_tool(&self, server: &str, names: &[&str]) -> bool {
        let enabled = self.tools.iter().find_map(|entry| match entry {
            ToolEntry::McpToolset { mcp_server_name, default_config, configs, .. }
                if mcp_server_name == server =>
            {
                setting(default_config.as_ref(), configs, names, |config| config.enabled)
            }
            _ => None,
        });
        enabled.unwrap_or(true)
    }

    /// The tools that the application runs.
    pub fn custom_tools(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.tools.iter().filter_map(|entry| match entry {
            ToolEntry::CustomTool { name, description, input_schema, .. } => {
                Some((name.as_str(), description.as_str(), input_schema))
            }
            _ => None,
        })
    }

    /// Whether the built-in tools are on offer.
    pub fn has_builtin_tools(&self) -> bool {
        self.tools.iter().any(|entry| matches!(entry, ToolEntry::AgentToolset { .. }))
    }

    /// Whether the model has a built-in tool. `names` are the tool and its aliases.
    pub fn has_builtin_tool(&self, names: &[&str]) -> bool {
        let enabled = self.tools.iter().find_map(|entry| match entry {
            ToolEntry::AgentToolset { default_config, configs, .. } => {
                setting(default_config.as_ref(), configs, names, |config| config.enabled)
            }
            _ => None,
        });
        self.has_builtin_tools() && enabled.unwrap_or(true)
    }

    /// What the definition says about asking before a built-in tool runs. `names` are the tool and its aliases.
    pub fn builtin_policy(&self, names: &[&str]) -> Option<PermissionPolicy> {
        self.tools.iter().find_map(|entry| match entry {
            ToolEntry::AgentToolset { default_config, configs, .. } => {
                setting(default_config.as_ref(), configs, names, |config| config.permission_policy)
            }
            _ => None,
        })
    }
}

/// What a toolset says about a tool: for the tool itself, or else for all of them. Entries of the same tool, which may be
/// under several of its names, say it together.
fn setting<T>(
    default: Option<&ToolConfig>,
    configs: &[NamedToolConfig],
    names: &[&str],
    of: impl Fn(&ToolConfig) -> Option<T>,
) -> Option<T> {
    let mut named = configs.iter().filter(|config| names.contains(&config.name.as_str()));
    named.find_map(|named| of(&named.config)).or_else(|| default.and_then(of))
}

impl ToolEntry {
    /// The first field that means nothing here, as a path within the entry.
    pub(super) fn unknown_field(&self) -> Option<String> {
        let first = |unknown: &Unknown| unknown.keys().next().cloned();
        match self {
            ToolEntry::CustomTool { unknown, .. } => first(unknown),
            ToolEntry::AgentToolset { default_config, configs, unknown }
            | ToolEntry::McpToolset { default_config, configs, unknown, .. } => {
                let of_default = default_config.as_ref().and_then(|config| first(&config.unknown));
                let mut named = configs.iter().enumerate();
                first(unknown).or_else(|| of_default.map(|field| format!("defaultConfig.{field}"))).or_else(
                    || {
                        named.find_map(|(index, named)| {
                            first(&named.config.unknown).map(|field| format!("configs[{index}].{field}"))
                        })
                    },
                )
            }
        }
    }
}

/// Whether every model takes this as the name of a tool.
pub fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_tools(tools: Value) -> AgentDefinition {
        serde_json::from_value(json!({ "name": "a", "model": "a/b", "tools": tools })).unwrap()
    }

    #[test]
    fn toolsets_say_which_tools_ask() {
        let configs = json!([{ "name": "shell", "permissionPolicy": { "type": "always_ask" } }]);
        let default = json!({ "permissionPolicy": { "type": "always_allow" } });
        let agent = with_tools(json!([
            { "type": "agent_toolset", "defaultConfig": default, "configs": configs },
            { "type": "mcp_toolset", "mcpServerName": "own", "defaultConfig": default, "configs": configs },
            { "type": "mcp_toolset", "mcpServerName": "other" },
        ]));
        let (ask, allow) = (Some(PermissionPolicy::AlwaysAsk), Some(PermissionPolicy::AlwaysAllow));
        assert_eq!(agent.builtin_policy(&["terminal", "shell"]), ask);
        assert_eq!(agent.builtin_policy(&["read_file"]), allow);
        assert_eq!(agent.mcp_policy("own", &["shell", "mcp_own_shell"]), ask);
        assert_eq!(agent.mcp_policy("own", &["read", "mcp_own_read"]), allow);
        assert_eq!(agent.mcp_policy("other", &["shell", "mcp_other_shell"]), None);
    }

    #[test]
    fn toolsets_say_which_tools_there_are() {
        let configs = json!([{ "name": "terminal", "enabled": false }]);
        let agent = with_tools(json!([
            { "type": "agent_toolset", "configs": configs },
            { "type": "mcp_toolset", "mcp_server_name": "own", "default_config": { "enabled": false },
              "configs": [{ "name": "read", "enabled": true }] },
        ]));
        assert!(!agent.has_builtin_tool(&["terminal", "shell"]) && agent.has_builtin_tool(&["read_file"]));
        assert!(agent.has_mcp_tool("own", &["read", "mcp_own_read"]));
        assert!(!agent.has_mcp_tool("own", &["write", "mcp_own_write"]));
        assert!(agent.has_mcp_tool("other", &["write"]));
    }

    #[test]
    fn entries_of_one_tool_say_together_what_holds_for_it() {
        let ask = json!({ "type": "always_ask" });
        let configs = json!([
            { "name": "terminal", "permissionPolicy": ask },
            { "name": "shell", "enabled": false },
        ]);
        let agent = with_tools(json!([{ "type": "agent_toolset", "configs": configs }]));
        let names = ["terminal", "shell"];
        assert!(!agent.has_builtin_tool(&names));
        assert_eq!(agent.builtin_policy(&names), Some(PermissionPolicy::AlwaysAsk));
    }

    #[test]
    fn what_means_nothing_is_not_stored() {
        let agent = with_tools(json!([{ "type": "custom_tool", "name": "x", "colour": "red" }]));
        assert_eq!(agent.tools[0].unknown_field().as_deref(), Some("colour"));
        let stored = serde_json::to_value(&agent.tools[0]).unwrap();
        assert_eq!(stored["name"], "x");
        assert_eq!(stored.get("colour"), None);
    }

    #[test]
    fn entries_say_whose_tools_are_on_offer() {
        let custom = json!({ "type": "custom_tool", "name": "check_order" });
        let servers =
            ["own", "other", "own"].map(|name| json!({ "type": "mcp_toolset", "mcpServerName": name }));
        let [one, two, again] = servers;
        let agent = with_tools(json!([custom, one, two, again]));
        assert_eq!(agent.mcp_toolsets().collect::<Vec<_>>(), ["other", "own"]);
        assert_eq!(agent.custom_tools().map(|(name, ..)| name).collect::<Vec<_>>(), ["check_order"]);
        assert!(!agent.has_builtin_tools());
        assert!(with_tools(json!([custom, { "type": "agent_toolset" }])).has_builtin_tools());
        assert!(!with_tools(json!([])).has_builtin_tools());
        assert!(with_tools(Value::Null).has_builtin_tools());
    }
}
