//! Decides what is to be done about each call of a model's answer.

use petasos_core::agent::{AgentDefinition, PermissionPolicy};
use petasos_core::event::ToolEffect;
use petasos_core::ids::{RequestId, ToolUseId};
use petasos_core::model::{Answer, AnswerPart, ToolSpec};
use petasos_core::session::SessionHeader;
use petasos_core::settings::{ServerTool as Setting, SessionSettings};
use petasos_core::step::{Permission, PlannedAnswer, PlannedCall, PlannedPart, ToolKind};
use petasos_tools::{Audience, Tool, Toolbox, all_names, canonical_name, clarify, coerce};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::engine::Shared;
use crate::hooks::{Observation, TurnInfo};
use crate::observers;

/// The most bytes of arguments that one call may have.
const MAX_ARGUMENTS: usize = 1024 * 1024;

/// The tools of an agent that we carry out and that are of use there.
pub(crate) fn server_specs<'a>(
    agent: &AgentDefinition,
    tools: &'a Toolbox,
    audience: Audience,
) -> impl Iterator<Item = ToolSpec> + 'a {
    let of_use = tools.iter().filter(move |tool| tool.is_of_use(audience)).map(|tool| tool.spec());
    let all = std::iter::once_with(clarify::spec).chain(of_use);
    agent.has_builtin_tools().then_some(all).into_iter().flatten()
}

/// Whether the agent's policies want a person asked before a tool runs.
pub(crate) fn asks_by_policy(agent: &AgentDefinition, name: &str, tool: &dyn Tool) -> bool {
    match agent.builtin_policy(&all_names(name)) {
        Some(PermissionPolicy::AlwaysAllow) => false,
        Some(PermissionPolicy::AlwaysAsk) => true,
        None => tool.asks_by_default(),
    }
}

/// For whom tools are chosen.
pub(crate) fn audience(user_id: Option<&str>, agent: &AgentDefinition) -> Audience {
    Audience { has_user: user_id.is_some(), has_skills: !agent.skills.is_empty() }
}

/// Plans every call of an answer.
pub(crate) async fn plan(planner: &Planner<'_>, answer: Answer) -> PlannedAnswer {
    let mut parts = Vec::with_capacity(answer.parts.len());
    let mut calls = 0;
    for part in answer.parts {
        parts.push(match part {
            AnswerPart::Thinking { text, opaque } => PlannedPart::Thinking { text, opaque },
            AnswerPart::Text(text) => PlannedPart::Text(text),
            AnswerPart::ToolCall { name, arguments } => {
                calls += 1;
                PlannedPart::Call(planner.call(&name, &arguments, calls).await)
            }
        });
    }
    PlannedAnswer { parts, usage: answer.usage, stop: answer.stop }
}

/// What plans depend on.
pub(crate) struct Planner<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) header: &'a SessionHeader,
    pub(crate) agent: &'a AgentDefinition,
    pub(crate) settings: &'a SessionSettings,
    pub(crate) turn: &'a TurnInfo,
}

impl Planner<'_> {
    /// The tools that the model is told about. The order changes only with the settings.
    pub(crate) fn offered(&self) -> Vec<ToolSpec> {
        let mut specs: Vec<ToolSpec> = self.custom_tools().collect();
        let audience = audience(self.header.user_id.as_deref(), self.agent);
        let server = server_specs(self.agent, &self.shared.tools, audience);
        let server: Vec<ToolSpec> = server
            .filter(|spec| self.settings.server_tool(&spec.name) != Setting::Off)
            .filter(|spec| !specs.iter().any(|own| own.name == spec.name))
            .collect();
        specs.extend(server);
        specs
    }

    /// The tools that the application runs: those of the session, and those of the agent unless the session has a list
    /// of its own.
    fn custom_tools(&self) -> impl Iterator<Item = ToolSpec> {
        let of_agent = self.agent.custom_tools().map(|(name, description, input_schema)| ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: input_schema.clone(),
        });
        let of_session = self.settings.client_tools.iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone(),
        });
        let of_agent = self.settings.server_tools.is_none().then_some(of_agent);
        of_agent.into_iter().flatten().chain(of_session)
    }

    async fn call(&self, name: &str, arguments: &str, number: usize) -> PlannedCall {
        let is_custom = self.custom_tools().any(|tool| tool.name == name);
        let name = if is_custom { name } else { canonical_name(name) };
        let most = self.shared.limits.step_tool_calls;
        if number > most {
            let why = format!("At most {most} calls are carried out at once; make this one again later.");
            return refused(name, Map::new(), why);
        }
        let mut input = match read_arguments(arguments) {
            Ok(input) => input,
            Err(why) => return refused(name, Map::new(), why),
        };
        if let Some(why) = self.shared.hooks.pre_tool_call(self.turn, name, &mut input).await {
            let id = ToolUseId::from_uuid(Uuid::now_v7());
            let observation = Observation::PostToolCall {
                tool_use_id: id.to_string(),
                tool: name.to_owned(),
                input: input.clone(),
                result: why.clone(),
                is_error: true,
                duration_ms: 0,
            };
            observers::tell_and_wait(self.shared, self.turn, observation).await;
            return refused_as(id, name, input, why);
        }
        if is_custom {
            let id = ToolUseId::for_custom(Uuid::now_v7());
            return PlannedCall::Custom { id, tool: name.to_owned(), input };
        }
        if self.agent.has_builtin_tools() && self.settings.server_tool(name) != Setting::Off {
            if name == clarify::NAME {
                return ask_user(name, input);
            }
            let audience = audience(self.header.user_id.as_deref(), self.agent);
            if let Some(tool) = self.shared.tools.get(name).filter(|tool| tool.is_of_use(audience)) {
                coerce(&tool.spec().input_schema, &mut input);
                let effect = tool.effect();
                return PlannedCall::Tool {
                    id: ToolUseId::from_uuid(Uuid::now_v7()),
                    kind: ToolKind::Builtin,
                    tool: name.to_owned(),
                    effect,
                    preview: tool.preview(&input),
                    permission: self.permission(name, tool.as_ref()).await,
                    input,
                    sudo: None,
                };
            }
        }
        let offered = self.offered();
        let names: Vec<&str> = offered.iter().map(|spec| spec.name.as_str()).collect();
        let have = if names.is_empty() {
            "There are none.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        };
        refused(name, input, format!("There is no tool {name}. {have}"))
    }

    async fn permission(&self, name: &str, tool: &dyn Tool) -> Permission {
        let asks = match self.settings.server_tool(name) {
            Setting::Trusted => false,
            Setting::Untrusted => true,
            Setting::ByPolicy | Setting::Off => asks_by_policy(self.agent, name, tool),
        };
        if asks && !self.is_granted(name).await { Permission::Ask } else { Permission::Run }
    }

    /// Whether the user allowed this agent the tool for good.
    async fn is_granted(&self, tool: &str) -> bool {
        let Some(user_id) = &self.header.user_id else { return false };
        let grants = self.shared.store.grants(&self.header.tenant, &self.header.agent_id, user_id).await;
        // If the grants cannot be read, asking once too often is the safe side.
        grants.is_ok_and(|tools| tools.iter().any(|granted| granted == tool))
    }
}

fn read_arguments(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err(format!(
            "The arguments have {} bytes; at most {MAX_ARGUMENTS} are allowed.",
            arguments.len()
        ));
    }
    if arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(input)) => Ok(input),
        Ok(_) => Err("The arguments must be a JSON object.".to_owned()),
        Err(error) => Err(format!("The arguments are not JSON: {error}.")),
    }
}

fn ask_user(name: &str, input: Map<String, Value>) -> PlannedCall {
    match clarify::parse(&input) {
        Ok(question) => PlannedCall::Clarify {
            request_id: RequestId::from_uuid(Uuid::now_v7()),
            question: question.text,
            choices: question.choices,
        },
        Err(why) => refused(name, input, why),
    }
}

fn refused(name: &str, input: Map<String, Value>, why: String) -> PlannedCall {
    refused_as(ToolUseId::from_uuid(Uuid::now_v7()), name, input, why)
}

fn refused_as(id: ToolUseId, name: &str, input: Map<String, Value>, why: String) -> PlannedCall {
    PlannedCall::Tool {
        id,
        kind: ToolKind::Builtin,
        tool: name.to_owned(),
        input,
        effect: ToolEffect::ReadOnly,
        preview: None,
        permission: Permission::Refuse(why),
        sudo: None,
    }
}
