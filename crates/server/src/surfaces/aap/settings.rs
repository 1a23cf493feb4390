//! What a request sets about a session: the agent's tools, its options, and tools of the application.

use std::collections::{BTreeMap, BTreeSet};

use petasos_core::agent::{AgentDefinition, is_tool_name};
use petasos_core::json_schema::check_bounds;
use petasos_core::settings::{ClientTool, EnabledTool, SessionSettings};
use petasos_engine::ServerTools;
use secrecy::SecretString;
use serde_json::Value;

use super::types::{AgentConfig, AgentOption, OptionFields, PLACEHOLDER, ServerToolRef, ToolSpec};
use crate::problem::Problem;

const MAX_CLIENT_TOOLS: usize = 128;
const MAX_DESCRIPTION_CHARS: usize = 20_000;

/// What a request wants to be different. What it leaves out stays as it is.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) server_tools: Option<Vec<ServerToolRef>>,
    pub(super) options: BTreeMap<String, String>,
    pub(super) client_tools: Option<Vec<ToolSpec>>,
}

/// The settings that come of it, and the values of secret options, which are no part of them.
pub(super) struct Chosen {
    pub(super) settings: SessionSettings,
    pub(super) secrets: BTreeMap<String, SecretString>,
}

/// The agent that the settings are for.
pub(super) struct Choices<'a> {
    pub(super) agent: &'a AgentDefinition,
    /// Its tools that we or MCP servers carry out.
    pub(super) tools: &'a ServerTools,
}

impl Choices<'_> {
    /// Changes settings as it is wished, or says which wish cannot be met.
    pub(super) fn choose(&self, current: SessionSettings, wishes: Wishes) -> Result<Chosen, Problem> {
        let mut chosen = Chosen { settings: current, secrets: BTreeMap::new() };
        if let Some(tools) = wishes.server_tools {
            chosen.settings.server_tools = Some(self.server_tools(&tools)?);
        }
        if let Some(tools) = wishes.client_tools {
            chosen.settings.client_tools = client_tools(tools)?;
        }
        self.check_names(&chosen.settings)?;
        for (name, value) in wishes.options {
            self.choose_option(&mut chosen, name, value)?;
        }
        Ok(chosen)
    }

    fn server_tools(&self, wanted: &[ServerToolRef]) -> Result<Vec<EnabledTool>, Problem> {
        let mut enabled: Vec<EnabledTool> = Vec::with_capacity(wanted.len());
        for (index, tool) in wanted.iter().enumerate() {
            let at = format!("agent.tools[{index}].name");
            let Some(name) = self.tools.name(&tool.name) else {
                let known: Vec<&str> = self.tools.known.iter().map(|tool| tool.spec.name.as_str()).collect();
                let problem = format!("the agent has no tool {:?}; it has: {}", tool.name, known.join(", "));
                return Err(Problem::validation(at, problem));
            };
            if enabled.iter().any(|earlier| earlier.name == name) {
                return Err(Problem::validation(at, format!("{:?} is listed twice", tool.name)));
            }
            enabled.push(EnabledTool { name: name.to_owned(), trust: tool.trust });
        }
        Ok(enabled)
    }

    /// A call is told by its name alone, so no two tools of a session may share one. A tool of the application takes the
    /// place of one that the agent has for it under the same name: who sends back what it was shown changes nothing.
    fn check_names(&self, settings: &SessionSettings) -> Result<(), Problem> {
        let mut names: BTreeSet<&str> = match &settings.server_tools {
            Some(tools) => tools.iter().map(|tool| tool.name.as_str()).collect(),
            None => {
                let known = self.tools.known.iter().map(|tool| tool.spec.name.as_str());
                known.filter(|name| !self.agent.custom_tools().any(|(custom, ..)| custom == *name)).collect()
            }
        };
        for (index, tool) in settings.client_tools.iter().enumerate() {
            if !names.insert(&tool.name) {
                let problem = format!("{:?} is the name of another tool of this session", tool.name);
                return Err(Problem::validation(format!("tools[{index}].name"), problem));
            }
        }
        Ok(())
    }

    fn choose_option(&self, chosen: &mut Chosen, name: String, value: String) -> Result<(), Problem> {
        let fail = |problem: String| Err(Problem::validation(format!("agent.options.{name}"), problem));
        let Some(option) = self.agent.options.iter().find(|option| option.name == name) else {
            let known: Vec<&str> = self.agent.options.iter().map(|option| option.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return fail(format!("the agent has no such option; it has: {known}"));
        };
        if let Some(problem) = option.value_problem(&value) {
            return fail(problem);
        }
        match option.is_secret() {
            false => drop(chosen.settings.options.insert(name, value)),
            // Whoever sends back what it was shown changes nothing.
            true if value == PLACEHOLDER => {}
            true => {
                if value == option.default {
                    chosen.settings.secret_options.remove(&name);
                } else {
                    chosen.settings.secret_options.insert(name.clone());
                }
                chosen.secrets.insert(name, SecretString::from(value));
            }
        }
        Ok(())
    }
}

fn client_tools(tools: Vec<ToolSpec>) -> Result<Vec<ClientTool>, Problem> {
    if tools.len() > MAX_CLIENT_TOOLS {
        let problem = format!("has {} entries; at most {MAX_CLIENT_TOOLS} are allowed", tools.len());
        return Err(Problem::validation("tools", problem));
    }
    let read = |(index, tool): (usize, ToolSpec)| {
        let fail = |field: &str, problem: String| {
            Err(Problem::validation(format!("tools[{index}].{field}"), problem))
        };
        if !is_tool_name(&tool.name) {
            return fail("name", format!("{:?} must be 1 to 64 letters, digits, '_' or '-'", tool.name));
        }
        if tool.description.chars().count() > MAX_DESCRIPTION_CHARS {
            return fail("description", format!("has more than {MAX_DESCRIPTION_CHARS} characters"));
        }
        let ToolSpec { name, title, description, parameters } = tool;
        let input_schema = Value::Object(parameters);
        if let Err(problem) = check_bounds(&input_schema) {
            return fail("parameters", problem.to_string());
        }
        Ok(ClientTool { name, title, description, input_schema })
    };
    tools.into_iter().enumerate().map(read).collect()
}

/// A tool of the application as it is shown.
pub(super) fn show_client_tool(tool: &ClientTool) -> ToolSpec {
    ToolSpec {
        name: tool.name.clone(),
        title: tool.title.clone(),
        description: tool.description.clone(),
        parameters: tool.input_schema.as_object().cloned().unwrap_or_default(),
    }
}

/// A tool of the agent's definition that the application runs, as it is shown.
pub(super) fn show_custom_tool((name, description, input_schema): (&str, &str, &Value)) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        title: None,
        description: description.to_owned(),
        parameters: input_schema.as_object().cloned().unwrap_or_default(),
    }
}

/// The agent of a session as it is configured for it, with secrets covered.
pub(super) fn show_agent(
    name: &str,
    agent: &AgentDefinition,
    tools: &ServerTools,
    settings: &SessionSettings,
) -> AgentConfig {
    let shown = |name: &str, trust| ServerToolRef { name: name.to_owned(), trust };
    let tools = match &settings.server_tools {
        Some(enabled) => enabled.iter().map(|tool| shown(&tool.name, tool.trust)).collect(),
        None => tools.known.iter().map(|tool| shown(&tool.spec.name, tool.trusted)).collect(),
    };
    let value = |option: &petasos_core::agent_option::AgentOption| {
        let is_set = settings.secret_options.contains(&option.name) || !option.default.is_empty();
        match option.is_secret() {
            true if is_set => PLACEHOLDER.to_owned(),
            _ => settings.options.get(&option.name).unwrap_or(&option.default).clone(),
        }
    };
    let options = agent.options.iter().map(|option| (option.name.clone(), value(option))).collect();
    AgentConfig { name: name.to_owned(), tools, options }
}

/// An option of an agent as it is shown.
pub(super) fn show_option(option: &petasos_core::agent_option::AgentOption) -> AgentOption {
    use petasos_core::agent_option::OptionKind;
    let fields = OptionFields {
        name: option.name.clone(),
        title: option.title.clone(),
        description: option.description.clone(),
        default: option.default.clone(),
    };
    match &option.kind {
        OptionKind::Text => AgentOption::Text(fields),
        OptionKind::Secret => AgentOption::Secret(fields),
        OptionKind::Select { options } => AgentOption::Select { fields, options: options.clone() },
    }
}
