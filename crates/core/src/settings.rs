//! What one session sets for itself, besides its agent's definition.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::SessionId;
use crate::model_settings::{InvalidSetting, ModelSettings, ModelSettingsChange, model_problem};

/// The settings of a session. They are in the log, so the values of secret options are not among them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SessionSettings {
    /// Tools that the application runs, besides the agent's own custom tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_tools: Vec<ClientTool>,
    /// The tools of the agent that are on; none for all of them, with the agent's policies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_tools: Option<Vec<EnabledTool>>,
    /// Values of the agent's options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Secret options that were given a value.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub secret_options: BTreeSet<String>,
    /// Whose subagent the session is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadSettings>,
    /// The model, in place of the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the model is asked, over what the agent says. Boxed, because the settings are part of every event's size.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub model_settings: Box<ModelSettings>,
    /// Whether nobody is there to be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unattended: bool,
}

/// What a subagent has from the session that it works for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadSettings {
    /// That session, whose workspace and secrets it shares.
    pub parent: SessionId,
    /// The tools that it has; none for those of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// What was allowed there for the rest of the session.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub allowed: BTreeSet<String>,
}

/// A tool that the application runs for this session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTool {
    /// What the model calls.
    pub name: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
}

/// A tool of the agent that is on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnabledTool {
    /// The tool.
    pub name: String,
    /// Whether it runs without asking.
    pub trust: bool,
}

fn is_empty(settings: &ModelSettings) -> bool {
    settings.is_empty()
}

impl SessionSettings {
    /// The settings after a change of the model and of how it is asked. The error names the field.
    pub fn with_model(
        &self,
        model: Option<Option<String>>,
        settings: Option<ModelSettingsChange>,
    ) -> Result<SessionSettings, InvalidSetting> {
        let mut changed = self.clone();
        if let Some(model) = model {
            if let Some(problem) = model.as_deref().and_then(model_problem) {
                return Err(InvalidSetting { name: "model".to_owned(), problem });
            }
            changed.model = model;
        }
        if let Some(change) = settings {
            let named = |InvalidSetting { name, problem }| {
                let dot = if name.is_empty() { "" } else { "." };
                InvalidSetting { name: format!("modelSettings{dot}{name}"), problem }
            };
            changed.model_settings = Box::new(self.model_settings.changed(change).map_err(named)?);
        }
        Ok(changed)
    }

    /// Whether the application runs this tool.
    pub fn is_client_tool(&self, name: &str) -> bool {
        self.client_tools.iter().any(|tool| tool.name == name)
    }

    /// What the settings say about a tool of the agent.
    pub fn server_tool(&self, name: &str) -> ServerTool {
        match &self.server_tools {
            None => ServerTool::ByPolicy,
            Some(tools) => match tools.iter().find(|tool| tool.name == name) {
                None => ServerTool::Off,
                Some(tool) if tool.trust => ServerTool::Trusted,
                Some(_) => ServerTool::Untrusted,
            },
        }
    }
}

/// What a session's settings say about a tool of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTool {
    /// Nothing: it is on, and the agent's policies decide whether it asks.
    ByPolicy,
    /// It is off.
    Off,
    /// It is on and runs without asking.
    Trusted,
    /// It is on and asks.
    Untrusted,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_tools_turns_all_others_off() {
        let mut settings = SessionSettings::default();
        assert_eq!(settings.server_tool("todo"), ServerTool::ByPolicy);
        settings.server_tools = Some(vec![
            EnabledTool { name: "todo".into(), trust: true },
            EnabledTool { name: "terminal".into(), trust: false },
        ]);
        let said = ["todo", "terminal", "clarify"].map(|name| settings.server_tool(name));
        assert_eq!(said, [ServerTool::Trusted, ServerTool::Untrusted, ServerTool::Off]);
    }

    #[test]
    fn settings_that_say_nothing_are_an_empty_object() {
        assert_eq!(serde_json::to_string(&SessionSettings::default()).unwrap(), "{}");
        assert_eq!(serde_json::from_str::<SessionSettings>("{}").unwrap(), SessionSettings::default());
    }
}
