//! Decides what is to be done about each call of a model's answer.

use std::sync::{Arc, LazyLock};

use petasos_core::agent::{AgentDefinition, PermissionPolicy};
use petasos_core::event::{Danger, McpTool, ToolEffect};
use petasos_core::ids::{RequestId, ToolUseId};
use petasos_core::model::{Answer, AnswerPart, ToolSpec};
use petasos_core::run::{EMIT_OUTPUT, RunJob};
use petasos_core::settings::ServerTool as Setting;
use petasos_core::step::{Emitted, Permission, PlannedAnswer, PlannedCall, PlannedPart, ToolKind};
use petasos_hooks::{CallStatus, Observation, ToolCall};
use petasos_tools::mcp::{Missing, Offer, OfferedTool};
use petasos_tools::{
    Audience, Risk, Tool, Toolbox, all_names, canonical_name, clarify, coerce, delegate_task, request_secret,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::engine::Unattended;
use crate::observers;
use crate::routines::emit_output;
use crate::surroundings::Surroundings;

/// The most bytes of arguments that one call may have.
const MAX_ARGUMENTS: usize = 1024 * 1024;

/// What a run, or a session that nobody attends, is told about a call that a person would have to allow.
const NOBODY_ATTENDS: &str = "This needs a person's permission, and nobody attends this run. Do not try it another way: \
                              go on without it.";

/// What a subagent is told about a call that a person would have to allow.
const NOBODY_TO_ASK: &str = "This needs a person's permission, and a subagent has nobody to ask. Do not try it another \
                             way: say in your result what you would have done, and leave it to the agent you work for.";

/// The tools that the engine carries out itself.
static OF_THE_ENGINE: LazyLock<[Arc<ToolSpec>; 3]> =
    LazyLock::new(|| [clarify::spec(), request_secret::spec(), delegate_task::spec()].map(Arc::new));

/// The tools of an agent that we carry out and that are of use there.
pub(crate) fn server_specs<'a>(
    agent: &AgentDefinition,
    tools: &'a Toolbox,
    audience: Audience,
) -> impl Iterator<Item = &'a Arc<ToolSpec>> {
    let all = OF_THE_ENGINE.iter().chain(tools.specs(audience));
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
    pub(crate) around: &'a Surroundings,
    /// The tools of MCP servers.
    pub(crate) mcp: &'a Offer,
}

/// Who carries out a call.
enum Target<'a> {
    Custom,
    Clarify,
    Secret,
    Delegate,
    Builtin(&'a dyn Tool),
    Mcp(&'a OfferedTool),
    /// It ends the run.
    Output(&'a RunJob),
    Nobody,
}

impl Target<'_> {
    /// The id that a call of that number has on every surface.
    fn call_id(&self, uuid: Uuid) -> String {
        match self {
            Target::Custom => ToolUseId::for_custom(uuid).to_string(),
            Target::Clarify => RequestId::from_uuid(uuid).to_string(),
            Target::Secret => RequestId::for_secret(uuid).to_string(),
            Target::Mcp(_) => ToolUseId::for_mcp(uuid).to_string(),
            Target::Delegate | Target::Builtin(_) | Target::Output(_) | Target::Nobody => {
                ToolUseId::from_uuid(uuid).to_string()
            }
        }
    }
}

impl Planner<'_> {
    /// The tools that the model is told about. The order changes only with the settings.
    pub(crate) fn offered(&self) -> Vec<Arc<ToolSpec>> {
        let mut specs: Vec<Arc<ToolSpec>> = self.custom_tools().map(Arc::new).collect();
        let audience = audience(self.around.header.lasting_user(), &self.around.agent);
        let server = server_specs(&self.around.agent, &self.around.shared.tools, audience);
        let server: Vec<Arc<ToolSpec>> = server
            .filter(|spec| self.is_on(&spec.name))
            .filter(|spec| !specs.iter().any(|own| own.name == spec.name))
            .cloned()
            .collect();
        specs.extend(server);
        for tool in self.mcp.iter().filter(|tool| self.is_on(&tool.spec.name)) {
            if !specs.iter().any(|other| other.name == tool.spec.name) {
                specs.push(Arc::clone(&tool.spec));
            }
        }
        if let Some(run) = &self.around.run {
            specs.retain(|spec| spec.name != EMIT_OUTPUT);
            specs.push(emit_output::spec(&run.job).into());
        }
        specs
    }

    /// The tools that the application runs: those of the session, and those of the agent unless the session has a list
    /// of its own.
    fn custom_tools(&self) -> impl Iterator<Item = ToolSpec> {
        let of_agent = self.around.agent.custom_tools().map(|(name, description, input_schema)| ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: input_schema.clone().into(),
        });
        let of_session = self.around.settings.client_tools.iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone().into(),
        });
        // The application knows nothing of subagents, and could not answer them; nor does anybody answer a run.
        let is_main = self.around.settings.thread.is_none() && self.around.run.is_none();
        let of_agent = (is_main && self.around.settings.server_tools.is_none()).then_some(of_agent);
        of_agent.into_iter().flatten().chain(of_session.filter(|_| self.around.run.is_none()))
    }

    /// Whether a tool that we carry out is there for this session.
    fn is_on(&self, name: &str) -> bool {
        let for_thread = self.around.settings.thread.as_ref().is_none_or(|thread| {
            let listed = thread.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
            listed && !delegate_task::NOT_FOR_SUBAGENTS.contains(&name)
        });
        let asks_nobody = self.is_attended() || ![clarify::NAME, request_secret::NAME].contains(&name);
        for_thread && asks_nobody && self.around.settings.server_tool(name) != Setting::Off
    }

    /// Plans one call, the `number`th of its answer.
    pub(crate) async fn call(&self, name: &str, arguments: &str, number: usize) -> PlannedCall {
        let is_custom = self.custom_tools().any(|tool| tool.name == name);
        let name = if is_custom { name } else { canonical_name(name) };
        let most = self.around.shared.limits.step_tool_calls;
        if number > most {
            let why = format!("At most {most} calls are carried out at once; make this one again later.");
            return refused(name, Map::new(), why);
        }
        let mut input = match read_arguments(arguments) {
            Ok(input) => input,
            Err(why) if self.is_output(name) => {
                let (id, input) = (ToolUseId::from_uuid(Uuid::now_v7()), Map::new());
                return PlannedCall::Output { id, input, emitted: Emitted::Unreadable(why) };
            }
            Err(why) => return refused(name, Map::new(), why),
        };
        let target = if is_custom { Target::Custom } else { self.target(name) };
        let uuid = Uuid::now_v7();
        let id = target.call_id(uuid);
        let call = ToolCall { tool_use_id: &id, tool: name };
        if let Some(why) = self.around.shared.hooks.pre_tool_call(&self.around.turn, call, &mut input).await {
            let id = id.parse().unwrap_or_else(|_| ToolUseId::from_uuid(uuid));
            let planned = refused_as(id, name, input, why);
            self.tell_if_refused(&planned, CallStatus::Blocked).await;
            return planned;
        }
        let planned = self.planned(target, uuid, name, input).await;
        self.tell_if_refused(&planned, CallStatus::Error).await;
        planned
    }

    /// Who carries out calls of a tool that is not the application's.
    fn target(&self, name: &str) -> Target<'_> {
        if let Some(run) = self.around.run.as_ref().filter(|_| self.is_output(name)) {
            return Target::Output(&run.job);
        }
        if self.around.agent.has_builtin_tools() && self.is_on(name) {
            match name {
                clarify::NAME => return Target::Clarify,
                request_secret::NAME => return Target::Secret,
                delegate_task::NAME => return Target::Delegate,
                _ => {}
            }
            let audience = audience(self.around.header.lasting_user(), &self.around.agent);
            if let Some(tool) = self.around.shared.tools.get(name).filter(|tool| tool.is_of_use(audience)) {
                return Target::Builtin(tool.as_ref());
            }
        }
        let of_server = self.mcp.get(name).filter(|_| self.is_on(name));
        of_server.map_or(Target::Nobody, Target::Mcp)
    }

    /// Whether a call of this tool ends the run under way.
    fn is_output(&self, name: &str) -> bool {
        self.around.run.is_some() && name == EMIT_OUTPUT
    }

    async fn planned(
        &self,
        target: Target<'_>,
        uuid: Uuid,
        name: &str,
        mut input: Map<String, Value>,
    ) -> PlannedCall {
        let id = ToolUseId::from_uuid(uuid);
        match target {
            Target::Custom => {
                PlannedCall::Custom { id: ToolUseId::for_custom(uuid), tool: name.to_owned(), input }
            }
            Target::Clarify => ask_user(uuid, name, input),
            Target::Secret => ask_for_secret(uuid, name, input),
            Target::Delegate => self.delegate(id, input).await,
            Target::Builtin(tool) => {
                coerce(&tool.spec().input_schema, &mut input);
                let sudo = tool.sudo_command(&input);
                PlannedCall::Tool {
                    id,
                    kind: ToolKind::Builtin,
                    tool: name.to_owned(),
                    effect: tool.effect(),
                    preview: tool.preview(&input),
                    permission: self.permission(name, tool, &input, sudo.is_some()).await,
                    input,
                    sudo: sudo.map(|command| (RequestId::for_sudo(Uuid::now_v7()), command)),
                }
            }
            Target::Mcp(tool) => self.mcp_call(uuid, tool, input).await,
            Target::Output(job) => {
                let emitted = emit_output::emitted(job, &input);
                PlannedCall::Output { id, input, emitted }
            }
            Target::Nobody => refused_as(id, name, input, self.unknown_tool(name)),
        }
    }

    /// Tells hooks about a call that never runs: for them it has ended.
    async fn tell_if_refused(&self, planned: &PlannedCall, status: CallStatus) {
        let PlannedCall::Tool { id, tool, input, permission: Permission::Refuse(why), .. } = planned else {
            return;
        };
        let observation = Observation::PostToolCall {
            tool_use_id: id.to_string(),
            tool: tool.clone(),
            input: input.clone(),
            result: why.clone(),
            status,
            duration_ms: 0,
        };
        observers::tell_and_wait(&self.around.shared, &self.around.turn, observation).await;
    }

    fn unknown_tool(&self, name: &str) -> String {
        let offered = self.offered();
        let names: Vec<&str> = offered.iter().map(|spec| spec.name.as_str()).collect();
        let have = if names.is_empty() {
            "There are none.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        };
        let missing = missing_text(self.mcp).map(|text| format!(" {text}")).unwrap_or_default();
        format!("There is no tool {name}. {have}{missing}")
    }

    async fn mcp_call(&self, uuid: Uuid, tool: &OfferedTool, input: Map<String, Value>) -> PlannedCall {
        let name = &tool.spec.name;
        let asks = tool.asks_by_policy(&self.around.agent);
        PlannedCall::Tool {
            id: ToolUseId::for_mcp(uuid),
            kind: ToolKind::Mcp(McpTool { server: tool.server.clone(), tool: tool.tool.clone() }),
            tool: name.clone(),
            effect: tool.effect,
            preview: tool.preview(&input),
            permission: self.unless_nobody_is_there(name, self.by_policy(name, asks).await),
            input,
            sudo: None,
        }
    }

    async fn permission(
        &self,
        name: &str,
        tool: &dyn Tool,
        input: &Map<String, Value>,
        needs_password: bool,
    ) -> Permission {
        let permission = match tool.risk(input) {
            Risk::Forbidden { reason } => return Permission::Refuse(reason),
            Risk::Dangerous { pattern_key, description } => {
                let danger = Danger { pattern_key, description };
                if self.is_granted(&danger.grant()).await {
                    self.by_policy(name, asks_by_policy(&self.around.agent, name, tool)).await
                } else {
                    Permission::AskAbout(danger)
                }
            }
            Risk::Ordinary => self.by_policy(name, asks_by_policy(&self.around.agent, name, tool)).await,
        };
        match self.nobody() {
            Some(told) if needs_password => Permission::Refuse(told.to_owned()),
            _ => self.unless_nobody_is_there(name, permission),
        }
    }

    /// The same permission, unless it wants somebody asked where nobody is.
    fn unless_nobody_is_there(&self, name: &str, permission: Permission) -> Permission {
        let Some(told) = self.nobody() else { return permission };
        let grant = match &permission {
            Permission::Ask => name.to_owned(),
            Permission::AskAbout(danger) => danger.grant(),
            Permission::Run | Permission::Refuse(_) => return permission,
        };
        let by_parent =
            self.around.settings.thread.as_ref().is_some_and(|thread| thread.allowed.contains(&grant));
        if by_parent
            || self.around.allowed.contains(&grant)
            || self.around.shared.unattended == Unattended::Allow
        {
            Permission::Run
        } else {
            Permission::Refuse(told.to_owned())
        }
    }

    /// What the model is told about a call that a person would have to allow, if nobody is there.
    fn nobody(&self) -> Option<&'static str> {
        match &self.around.settings.thread {
            Some(_) => Some(NOBODY_TO_ASK),
            None if self.is_attended() => None,
            None => Some(NOBODY_ATTENDS),
        }
    }

    /// Whether somebody could answer a question of the turn. A subagent's questions are not asked at all.
    fn is_attended(&self) -> bool {
        self.around.run.is_none() && !self.around.settings.unattended
    }

    /// What the session's settings and the agent's policies say about a tool.
    async fn by_policy(&self, name: &str, policy_asks: bool) -> Permission {
        let asks = match self.around.settings.server_tool(name) {
            Setting::Trusted => false,
            Setting::Untrusted => true,
            Setting::ByPolicy | Setting::Off => policy_asks,
        };
        if asks && !self.is_granted(name).await { Permission::Ask } else { Permission::Run }
    }

    /// Subagents ask for themselves where it matters, so giving them work does not unless a policy says so.
    async fn delegate(&self, id: ToolUseId, input: Map<String, Value>) -> PlannedCall {
        let name = delegate_task::NAME;
        let most = self.around.shared.limits.call_threads;
        let tasks = match delegate_task::parse(&input, most) {
            Ok(tasks) => tasks,
            Err(why) => return refused_as(id, name, input, why),
        };
        let asks = self.around.agent.builtin_policy(&[name]) == Some(PermissionPolicy::AlwaysAsk);
        let goals: Vec<&str> = tasks.iter().map(|task| task.goal.as_str()).collect();
        PlannedCall::Tool {
            id,
            kind: ToolKind::Builtin,
            tool: name.to_owned(),
            // Carried out again, it finds the subagents that it had.
            effect: ToolEffect::ReadOnly,
            preview: Some(goals.join("; ").chars().take(200).collect()),
            permission: self.unless_nobody_is_there(name, self.by_policy(name, asks).await),
            input,
            sudo: None,
        }
    }

    /// Whether the user allowed this agent the tool or danger for good.
    async fn is_granted(&self, tool: &str) -> bool {
        let Some(user_id) = self.around.header.lasting_user() else { return false };
        let grants = self
            .around
            .shared
            .store
            .grants(&self.around.header.tenant, &self.around.header.agent_id, user_id)
            .await;
        // If the grants cannot be read, asking once too often is the safe side.
        grants.is_ok_and(|tools| tools.iter().any(|granted| granted == tool))
    }
}

/// What the model is told about MCP servers that cannot be used.
pub(crate) fn missing_text(offer: &Offer) -> Option<String> {
    let missing = offer.missing.iter().map(|missing| {
        let Missing { server, problem } = missing;
        format!("The MCP server {server} cannot be used now ({problem}); its tools are missing.")
    });
    let texts: Vec<String> = missing.collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

fn read_arguments(arguments: &str) -> Result<Map<String, Value>, String> {
    if arguments.len() > MAX_ARGUMENTS {
        return Err(format!(
            "The arguments have more than {MAX_ARGUMENTS} bytes, the most that a call may have."
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

fn ask_user(uuid: Uuid, name: &str, input: Map<String, Value>) -> PlannedCall {
    match clarify::parse(&input) {
        Ok(question) => PlannedCall::Clarify {
            request_id: RequestId::from_uuid(uuid),
            question: question.text,
            choices: question.choices,
        },
        Err(why) => refused_as(ToolUseId::from_uuid(uuid), name, input, why),
    }
}

fn ask_for_secret(uuid: Uuid, name: &str, input: Map<String, Value>) -> PlannedCall {
    match request_secret::parse(&input) {
        Ok(wanted) => PlannedCall::Secret {
            request_id: RequestId::for_secret(uuid),
            name: wanted.name,
            prompt: wanted.prompt,
        },
        Err(why) => refused_as(ToolUseId::from_uuid(uuid), name, input, why),
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
