//! Whether a definition can be used: everything that the types do not say.

use std::collections::BTreeSet;

use super::{AgentDefinition, ToolEntry, is_tool_name};
use crate::agent_option;
use crate::json_schema::check_bounds;
use crate::metadata::metadata_problem;
use crate::model_settings::{InvalidSetting, model_problem};
use crate::nearest::nearest;

/// What the names of MCP servers' tools begin with.
const MCP_PREFIX: &str = "mcp_";
const MAX_NAME: usize = 256;
const MAX_INSTRUCTIONS: usize = 1_000_000;
const MAX_TOOL_ENTRIES: usize = 128;
const MAX_MCP_SERVERS: usize = 20;
const MAX_SKILLS: usize = 100;

/// A definition that cannot be used, with the field to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct InvalidDefinition {
    /// The field, as a path.
    pub field: String,
    /// What is wrong and what is allowed.
    pub problem: String,
}

impl AgentDefinition {
    /// Checks everything that the types do not.
    pub fn validate(&self) -> Result<(), InvalidDefinition> {
        let fail = |field: String, problem: String| Err(InvalidDefinition { field, problem });
        if self.name.trim().is_empty() || self.name.chars().count() > MAX_NAME {
            return fail("name".into(), format!("must be 1 to {MAX_NAME} characters"));
        }
        if let Some(problem) = model_problem(&self.model) {
            return fail("model".into(), problem);
        }
        if let Err(InvalidSetting { name, problem }) = self.model_settings.validate() {
            return fail(format!("modelSettings.{name}"), problem);
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
            if let Some(field) = entry.unknown_field() {
                return fail(
                    format!("tools[{index}].{field}"),
                    "is not a field that there is here".to_owned(),
                );
            }
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
                    if let Err(problem) = check_bounds(input_schema) {
                        return fail(format!("tools[{index}].inputSchema"), problem.to_string());
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks that every name in `configs` of an `agent_toolset` is that of a tool: one of `known`, or one that the
    /// application runs. Names in the form of tools of MCP servers are taken on trust, because only those servers know them.
    pub fn validate_tool_names(&self, known: &[&str]) -> Result<(), InvalidDefinition> {
        for (index, entry) in self.tools.iter().enumerate() {
            let ToolEntry::AgentToolset { configs, .. } = entry else { continue };
            for (at, config) in configs.iter().enumerate() {
                let name = config.name.as_str();
                let is_custom = self.custom_tools().any(|(custom, ..)| custom == name);
                if known.contains(&name) || is_custom || name.starts_with(MCP_PREFIX) {
                    continue;
                }
                let nearest = nearest(name, known).unwrap_or_default();
                return Err(InvalidDefinition {
                    field: format!("tools[{index}].configs[{at}].name"),
                    problem: format!("there is no tool {name:?}; the nearest name is {nearest}"),
                });
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
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
    fn tools_in_configs_are_known_by_name() {
        let agent = |name: &str| {
            definition(json!({ "name": "a", "model": "a/b", "tools": [
                { "type": "custom_tool", "name": "check_order" },
                { "type": "agent_toolset", "configs": [{ "name": "todo" }, { "name": name }] },
                { "type": "mcp_toolset", "mcpServerName": "own", "configs": [{ "name": "whatever" }] },
            ] }))
        };
        for name in ["todo", "web_search", "check_order", "mcp_own_draw"] {
            assert_eq!(agent(name).validate_tool_names(&["todo", "web_search"]), Ok(()), "{name}");
        }
        let wrong = agent("web_serch").validate_tool_names(&["todo", "web_search"]).unwrap_err();
        assert_eq!(wrong.field, "tools[1].configs[1].name");
        assert!(wrong.problem.contains("web_search"), "{wrong}");
    }

    #[test]
    fn toolsets_of_mcp_servers_name_a_server() {
        let agent = definition(json!({
            "name": "a", "model": "a/b",
            "mcpServers": [{ "type": "url", "name": "own", "url": "https://host/mcp" }],
            "tools": [
                { "type": "mcp_toolset", "mcpServerName": "own" },
                { "type": "mcp_toolset", "mcpServerName": "other" },
            ],
        }));
        let field = |error: InvalidDefinition| error.field;
        assert_eq!(
            agent.validate_toolsets(|_| false).map_err(field),
            Err("tools[1].mcpServerName".to_owned())
        );
        assert_eq!(agent.validate_toolsets(|name| name == "other"), Ok(()));
    }
}
