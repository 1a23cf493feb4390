//! Lets a tool call other tools, by the same rules as a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{ClarifyRequest, SecretRequest};
use petasos_core::model::ToolSpec;
use petasos_core::run::EMIT_OUTPUT;
use petasos_core::state::{Call, CallKind, Progress};
use petasos_core::step::{Permission, PlannedCall, ToolKind};
use petasos_hooks::{CallStatus, Observation};
use petasos_tools::{Dispatch, ToolOutput, canonical_name, clarify, delegate_task, request_secret};
use serde_json::{Map, Value};

use crate::engine::now;
use crate::observers;
use crate::tool_run::ToolRun;

impl Dispatch for ToolRun {
    fn spec(&self, tool: &str) -> Option<Arc<ToolSpec>> {
        self.around.shared.tools.spec(tool).cloned()
    }

    fn call(&self, tool: &str, input: Map<String, Value>) -> BoxFuture<'_, ToolOutput> {
        let tool = tool.to_owned();
        async move { self.dispatch(&tool, input).await }.boxed()
    }
}

impl ToolRun {
    /// Carries out a call from within this one. Only what would run without asking does: nobody could answer in the
    /// middle of a call.
    async fn dispatch(&self, tool: &str, input: Map<String, Value>) -> ToolOutput {
        if canonical_name(tool) == delegate_task::NAME {
            // Its subagents belong to a call that the log knows.
            return ToolOutput::error(
                "delegate_task is only for calls of your own; nothing else can make one.",
            );
        }
        let planned = self.around.planner().await.call(tool, Ok(input), 1).await;
        let may_run = |permission: &Permission, tool: &str| match permission {
            Permission::Run => true,
            Permission::Ask => self.around.allowed.contains(tool),
            Permission::AskAbout(_) | Permission::Refuse(_) => false,
        };
        match planned {
            PlannedCall::Tool { id, kind, tool, input, effect, permission, sudo: None, .. }
                if may_run(&permission, &tool) =>
            {
                let kind = match kind {
                    ToolKind::Builtin => CallKind::Builtin,
                    ToolKind::Mcp(_) => CallKind::Mcp,
                };
                let call = Call {
                    id: id.to_string(),
                    tool,
                    kind,
                    input,
                    effect,
                    asked: false,
                    sudo: None,
                    progress: Progress::Started,
                    created_at: now(),
                    preview: None,
                    danger: None,
                    patterns: Vec::new(),
                    budget: None,
                    threads: BTreeMap::new(),
                };
                ToolRun { call, sudo_password: None, ..self.clone() }.execute().await
            }
            PlannedCall::Tool { permission: Permission::Refuse(why), .. } => ToolOutput::error(why),
            planned => {
                let why =
                    format!("{tool} would have to ask the user here, which only a call of your own can do.");
                observers::tell_and_wait(&self.around.shared, &self.around.turn, unmade(planned, &why)).await;
                ToolOutput::error(why)
            }
        }
    }
}

/// What hooks are told about a call that cannot be made from within another: for them it has ended.
fn unmade(planned: PlannedCall, why: &str) -> Observation {
    let (tool_use_id, tool, input) = match planned {
        PlannedCall::Tool { id, tool, input, .. } | PlannedCall::Custom { id, tool, input } => {
            (id.to_string(), tool, input)
        }
        PlannedCall::Clarify { request_id, question, choices } => {
            let asked = ClarifyRequest { request_id, question, choices };
            (asked.request_id.to_string(), clarify::NAME.to_owned(), asked.input())
        }
        PlannedCall::Secret { request_id, name, prompt } => {
            let asked = SecretRequest { request_id, name, prompt };
            (asked.request_id.to_string(), request_secret::NAME.to_owned(), asked.input())
        }
        PlannedCall::Output { id, input, .. } => (id.to_string(), EMIT_OUTPUT.to_owned(), input),
    };
    let (result, status) = (why.to_owned(), CallStatus::Error);
    Observation::PostToolCall { tool_use_id, tool, input, result, status, duration_ms: 0 }
}
