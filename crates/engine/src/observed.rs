//! What observers are told about events of the log.

use petasos_core::State;
use petasos_core::context::{SECRET_SUPPLIED, STOPPED};
use petasos_core::event::{
    Danger, Event, Payload, Scope, StopReason, ToolConfirmation, Verdict, joined_text,
};
use petasos_core::state::{ActionKind, Call, CallKind, Progress, Turn};
use petasos_hooks::{Approval, CallStatus, Observation};
use serde_json::{Map, Value};

/// Something to tell, and the turn that it is about.
#[derive(Debug, PartialEq)]
pub(crate) struct Observed {
    /// The id of the message that opened the turn; empty outside a turn.
    pub(crate) turn_id: String,
    /// What happened.
    pub(crate) observation: Observation,
}

/// What there is to tell about events that were appended together, given the state before them.
pub(crate) fn observed(before: &State, events: &[Event]) -> Vec<Observed> {
    let mut state = before.clone();
    let mut turn_id = before.turn_id().map(|id| id.to_string()).unwrap_or_default();
    let mut all = Vec::new();
    for event in events {
        if event.payload.opens_turn() {
            turn_id = event.id().to_string();
        }
        let observations = of_event(&state, event, events).into_iter();
        all.extend(observations.map(|observation| Observed { turn_id: turn_id.clone(), observation }));
        state.apply(event);
    }
    all
}

/// What there is to tell about an event, given the state just before it.
fn of_event(state: &State, event: &Event, events: &[Event]) -> Vec<Observation> {
    match &event.payload {
        Payload::ToolUse(call) | Payload::McpToolUse(call) if call.requires_action => {
            let id = call.id.as_str();
            let asked = approval(id, &call.tool, &call.input, call.preview.as_deref(), call.danger.as_ref());
            vec![Observation::PreApprovalRequest(asked)]
        }
        Payload::UserToolConfirmation(confirmation) => {
            let call = call(state, confirmation.tool_use_id.as_str());
            call.map(|call| answered(call, choice(confirmation))).into_iter().collect()
        }
        Payload::ToolResult(result) | Payload::McpToolResult(result) => {
            let Some(call) = call(state, result.tool_use_id.as_str()) else { return Vec::new() };
            // Something else came in place of the permission: an interrupt, or a result. Nobody is asked to allow a
            // question.
            let asks_permission = matches!(call.kind, CallKind::Builtin | CallKind::Mcp);
            let denied =
                (asks_permission && call.progress == Progress::Waiting).then(|| answered(call, "deny"));
            // A question of ours is no tool call.
            let ended = call.budget.is_none().then(|| {
                let text = joined_text(&result.content);
                ended(call, text, result.is_error, event)
            });
            denied.into_iter().chain(ended).collect()
        }
        Payload::UserCustomToolResult(result) => {
            let text = joined_text(&result.content);
            let call = call(state, result.tool_use_id.as_str());
            call.map(|call| ended(call, text, result.is_error, event)).into_iter().collect()
        }
        Payload::UserClarifyResult(result) => {
            let call = call(state, result.request_id.as_str());
            call.map(|call| ended(call, result.answer.clone(), false, event)).into_iter().collect()
        }
        Payload::UserSecretResult(answered) => {
            let call = call(state, answered.request_id.as_str());
            call.map(|call| ended(call, SECRET_SUPPLIED.to_owned(), false, event)).into_iter().collect()
        }
        Payload::ActionExpired(expired) => match (expired.action, expired.told()) {
            (ActionKind::ToolConfirmation, _) => {
                let call = call(state, &expired.id);
                call.map(|call| answered(call, "timeout")).into_iter().collect()
            }
            (_, Some(told)) => {
                let call = call(state, &expired.id);
                call.map(|call| ended(call, told.to_owned(), true, event)).into_iter().collect()
            }
            (_, None) => Vec::new(),
        },
        Payload::StatusIdle(idle) => of_idle(state, &idle.stop_reason, event, events),
        Payload::Archived {} => vec![Observation::SessionFinalize],
        _ => Vec::new(),
    }
}

/// What there is to tell when a turn pauses or ends.
fn of_idle(state: &State, stop_reason: &StopReason, event: &Event, events: &[Event]) -> Vec<Observation> {
    let (completed, interrupted) = match stop_reason {
        StopReason::RequiresAction { .. } => return Vec::new(),
        StopReason::EndTurn { interrupted, .. } => (!interrupted, *interrupted),
        StopReason::Error { .. } => (false, false),
    };
    // What somebody outside was asked for has no result in the log if they are asked no more.
    let dropped = calls(state).iter().filter(|call| call.progress != Progress::Done);
    let mut all: Vec<_> = dropped.map(|call| ended(call, STOPPED.to_owned(), true, event)).collect();
    if completed {
        // What was said before is put in by whoever has the conversation at hand.
        let (user_message, history) = (String::new(), Vec::new());
        all.push(Observation::PostLlmCall { user_message, text: last_text(events), history });
    }
    all.push(Observation::SessionEnd { completed, interrupted });
    all
}

/// What a person is asked about a call.
fn approval(
    id: &str,
    tool: &str,
    input: &Map<String, Value>,
    preview: Option<&str>,
    danger: Option<&Danger>,
) -> Approval {
    let command = preview.or_else(|| input.get("command").and_then(Value::as_str));
    let (pattern_keys, description) = match danger {
        Some(danger) => (danger.pattern_keys().map(str::to_owned).collect(), danger.description.clone()),
        None => (vec![format!("tool:{tool}")], format!("The permission policy asks before {tool} runs.")),
    };
    Approval {
        tool_use_id: id.to_owned(),
        tool: tool.to_owned(),
        command: command.map_or_else(|| Value::Object(input.clone()).to_string(), str::to_owned),
        description,
        pattern_keys,
    }
}

/// What came of asking.
fn answered(call: &Call, choice: &'static str) -> Observation {
    let preview = call.preview.as_deref();
    let approval = approval(&call.id, &call.tool, &call.input, preview, call.danger.as_ref());
    Observation::PostApprovalResponse { approval, choice }
}

fn choice(confirmation: &ToolConfirmation) -> &'static str {
    match (confirmation.result, confirmation.scope) {
        (Verdict::Deny, _) => "deny",
        (Verdict::Allow, Scope::Once) => "once",
        (Verdict::Allow, Scope::Session) => "session",
        (Verdict::Allow, Scope::Always) => "always",
    }
}

fn call<'a>(state: &'a State, id: &str) -> Option<&'a Call> {
    calls(state).iter().find(|call| call.id == id)
}

fn calls(state: &State) -> &[Call] {
    state.turn.as_ref().map(Turn::calls).unwrap_or_default()
}

/// The end of a call.
fn ended(call: &Call, result: String, is_error: bool, event: &Event) -> Observation {
    let waited = event.created_at.duration_since(call.created_at).as_millis();
    Observation::PostToolCall {
        tool_use_id: call.id.clone(),
        tool: call.tool.clone(),
        input: call.input.clone(),
        result,
        status: if is_error { CallStatus::Error } else { CallStatus::Ok },
        duration_ms: waited.try_into().unwrap_or_default(),
    }
}

fn last_text(events: &[Event]) -> String {
    let texts = events.iter().rev().find_map(|event| match &event.payload {
        Payload::AgentMessage(message) => Some(message.text.clone()),
        _ => None,
    });
    texts.unwrap_or_default()
}
