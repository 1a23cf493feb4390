//! Decides what is to be done about each call of a model's answer.

mod judged;
mod offered;
mod permission;
mod target;

use petasos_core::event::ToolEffect;
use petasos_core::ids::ToolUseId;
use petasos_core::model::{Answer, AnswerPart, Stop};
use petasos_core::step::{Emitted, Permission, PlannedAnswer, PlannedCall, PlannedPart, ToolKind};
use petasos_hooks::{CallStatus, Observation, ToolCall};
use petasos_tools::canonical_name;
use petasos_tools::mcp::Offer;
use serde_json::{Map, Value};
use uuid::Uuid;

use self::target::Target;
use crate::observers;
use crate::surroundings::Surroundings;

pub(crate) use offered::{audience, missing_text, server_specs};
pub(crate) use permission::asks_by_policy;

/// The most bytes of arguments that one call may have.
const MAX_ARGUMENTS: usize = 1024 * 1024;

/// What the model is told about a call that its output limit has cut.
const CUT: &str = "This call did not run: the answer ended at its output limit before the call was complete. Make it \
                   again, in smaller pieces if its arguments are long.";

/// Plans every call of an answer.
pub(crate) async fn plan(planner: &Planner<'_>, answer: Answer) -> PlannedAnswer {
    let mut parts = Vec::with_capacity(answer.parts.len());
    let (mut calls, mut has_cut_call, mut call_data) = (0, false, Vec::new());
    for part in answer.parts {
        parts.push(match part {
            AnswerPart::Thinking { text, opaque } => PlannedPart::Thinking { text, opaque },
            AnswerPart::Text(text) => PlannedPart::Text(text),
            AnswerPart::ToolCall { name, arguments, opaque } => {
                calls += 1;
                call_data.push(opaque);
                let is_cut = answer.stop == Stop::MaxTokens && !is_whole(&arguments);
                has_cut_call |= is_cut;
                let arguments = if is_cut { Err(CUT.to_owned()) } else { read_arguments(&arguments) };
                PlannedPart::Call(planner.call(&name, arguments, calls).await)
            }
        });
    }
    let shows_typing = planner.around.shows_typing();
    let Answer { usage, stop, left_out, .. } = answer;
    PlannedAnswer { parts, usage, stop, has_cut_call, call_data, left_out, shows_typing }
}

/// What plans depend on.
pub(crate) struct Planner<'a> {
    pub(crate) around: &'a Surroundings,
    /// The tools of MCP servers.
    pub(crate) mcp: &'a Offer,
}

impl Planner<'_> {
    /// Plans one call, the `number`th of its answer.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Result<Map<String, Value>, String>,
        number: usize,
    ) -> PlannedCall {
        let is_custom = self.custom_tools().any(|tool| tool.name == name);
        let name = if is_custom { name } else { canonical_name(name) };
        let most = self.around.shared.limits.step_tool_calls;
        if number > most {
            let why = format!("At most {most} calls are carried out at once; make this one again later.");
            return self.unheard(refused(name, why));
        }
        let mut input = match arguments {
            Ok(input) => input,
            Err(why) if self.is_output(name) => {
                let (id, input) = (ToolUseId::from_uuid(Uuid::now_v7()), Map::new());
                return self.unheard(PlannedCall::Output { id, input, emitted: Emitted::Unreadable(why) });
            }
            Err(why) => return self.unheard(refused(name, why)),
        };
        let target = if is_custom { Target::Custom } else { self.target(name) };
        let uuid = Uuid::now_v7();
        let id = target.call_id(uuid);
        let call = ToolCall { tool_use_id: &id, tool: name };
        if let Some(why) = self.around.shared.hooks.pre_tool_call(&self.around.turn, call, &mut input).await {
            let id = id.parse().unwrap_or_else(|_| ToolUseId::from_uuid(uuid));
            let planned = refused_of(target.kind(), id, name, input, why);
            self.tell_if_refused(&planned, CallStatus::Blocked).await;
            return planned;
        }
        let planned = self.planned(target, uuid, name, input).await;
        self.tell_if_refused(&planned, CallStatus::Error).await;
        planned
    }

    /// A call that no hook is told of: not that it began, and so not that it ends.
    fn unheard(&self, planned: PlannedCall) -> PlannedCall {
        if let PlannedCall::Tool { id, .. } | PlannedCall::Output { id, .. } = &planned {
            self.around.told.note(id.as_str());
        }
        planned
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
        self.around.told.note(id.as_str());
        observers::tell_and_wait(&self.around.shared, &self.around.turn, observation).await;
    }
}

/// Whether the arguments of an answer that ended at its limit are all there. Some vendors send an empty object for a call
/// whose arguments had not begun.
fn is_whole(arguments: &str) -> bool {
    matches!(serde_json::from_str(arguments), Ok(Value::Object(input)) if !input.is_empty())
}

pub(crate) fn read_arguments(arguments: &str) -> Result<Map<String, Value>, String> {
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

fn refused(name: &str, why: String) -> PlannedCall {
    refused_as(ToolUseId::from_uuid(Uuid::now_v7()), name, Map::new(), why)
}

/// A call of the server's own that never runs, because of `why`.
fn refused_as(id: ToolUseId, name: &str, input: Map<String, Value>, why: String) -> PlannedCall {
    refused_of(ToolKind::Builtin, id, name, input, why)
}

/// A call that never runs, because of `why`.
fn refused_of(
    kind: ToolKind,
    id: ToolUseId,
    name: &str,
    input: Map<String, Value>,
    why: String,
) -> PlannedCall {
    PlannedCall::Tool {
        id,
        kind,
        tool: name.to_owned(),
        input,
        effect: ToolEffect::ReadOnly,
        preview: None,
        permission: Permission::Refuse(why),
        patterns: Vec::new(),
        sudo: None,
    }
}
