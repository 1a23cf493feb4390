//! Who carries out a call, and what is planned for it there.

use std::sync::Arc;

use petasos_core::agent::PermissionPolicy;
use petasos_core::event::{McpTool, ToolEffect};
use petasos_core::ids::{RequestId, ToolUseId};
use petasos_core::run::{EMIT_OUTPUT, RunJob};
use petasos_core::step::{Permission, PlannedCall, ToolKind};
use petasos_tools::mcp::OfferedTool;
use petasos_tools::{Tool, all_names, clarify, coerce, delegate_task, request_secret};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::judged::{self, Judged};
use super::{Planner, audience, refused_as};
use crate::routines::emit_output;

/// Who carries out a call.
pub(super) enum Target<'a> {
    Custom,
    Clarify,
    Secret,
    Delegate,
    Builtin(&'a Arc<dyn Tool>),
    Mcp(&'a OfferedTool),
    /// It ends the run.
    Output(&'a RunJob),
    Nobody,
}

impl Target<'_> {
    /// What a call is in the log if it is refused. One of the application's is the server's then: nobody else has to
    /// answer it.
    pub(super) fn kind(&self) -> ToolKind {
        match self {
            Target::Mcp(tool) => of_server(tool),
            _ => ToolKind::Builtin,
        }
    }

    /// The id that a call of that number has on every surface.
    pub(super) fn call_id(&self, uuid: Uuid) -> String {
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
    /// Who carries out calls of a tool that is not the application's.
    pub(super) fn target(&self, name: &str) -> Target<'_> {
        if let Some(run) = self.around.run.as_ref().filter(|_| self.is_output(name)) {
            return Target::Output(&run.job);
        }
        if self.around.agent.has_builtin_tool(&all_names(name)) && self.is_on(name) {
            match name {
                clarify::NAME => return Target::Clarify,
                request_secret::NAME => return Target::Secret,
                delegate_task::NAME => return Target::Delegate,
                _ => {}
            }
            let audience = audience(self.around.header.lasting_user(), &self.around.agent);
            if let Some(tool) = self.around.shared.tools.get(name).filter(|tool| tool.is_of_use(audience)) {
                return Target::Builtin(tool);
            }
        }
        let is_there = |tool: &&OfferedTool| self.is_on(name) && tool.is_enabled(&self.around.agent);
        let of_server = self.mcp.get(name).filter(is_there);
        of_server.map_or(Target::Nobody, Target::Mcp)
    }

    /// Whether a call of this tool ends the run under way.
    pub(super) fn is_output(&self, name: &str) -> bool {
        self.around.run.is_some() && name == EMIT_OUTPUT
    }

    /// What a call comes to that is carried out there.
    pub(super) async fn planned(
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
                let Judged { refusal, sudo, risk, patterns } =
                    judged::judge(tool, &input, &self.around.header.tenant).await;
                let permission = match refusal {
                    Some(why) => Permission::Refuse(why),
                    None => self.permission(name, tool.as_ref(), &input, risk, sudo.is_some()).await,
                };
                PlannedCall::Tool {
                    id,
                    kind: ToolKind::Builtin,
                    tool: name.to_owned(),
                    effect: tool.effect(),
                    preview: tool.preview(&input),
                    permission,
                    patterns,
                    input,
                    sudo: sudo.map(|command| (RequestId::for_sudo(Uuid::now_v7()), command)),
                }
            }
            Target::Mcp(tool) => self.mcp_call(uuid, tool, input).await,
            Target::Output(job) => {
                let emitted = emit_output::emitted(job, &input).await;
                PlannedCall::Output { id, input, emitted }
            }
            Target::Nobody => refused_as(id, name, input, self.unknown_tool(name)),
        }
    }

    async fn mcp_call(&self, uuid: Uuid, tool: &OfferedTool, input: Map<String, Value>) -> PlannedCall {
        let name = &tool.spec.name;
        let asks = tool.asks_by_policy(&self.around.agent);
        PlannedCall::Tool {
            id: ToolUseId::for_mcp(uuid),
            kind: of_server(tool),
            tool: name.clone(),
            effect: tool.effect,
            preview: tool.preview(&input),
            permission: self.unless_nobody_is_there(name, self.by_policy(name, asks).await),
            patterns: Vec::new(),
            input,
            sudo: None,
        }
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
            patterns: Vec::new(),
            input,
            sudo: None,
        }
    }
}

fn of_server(tool: &OfferedTool) -> ToolKind {
    ToolKind::Mcp(McpTool { server: tool.server.clone(), tool: tool.tool.clone() })
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
