//! What observers are told about events of the log.

use petasos_core::State;
use petasos_core::event::{
    Danger, Event, Payload, Scope, StopReason, ToolConfirmation, Verdict, joined_text,
};
use petasos_core::state::{ActionKind, Call, Progress, Turn};
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
    let mut turn_id = before.turn_id().map(|id| id.to_string()).unwrap_or_default();
    let mut all = Vec::new();
    for event in events {
        if event.payload.opens_turn() {
            turn_id = event.id().to_string();
        }
        let observations = of_event(before, event, events);
        all.extend(
            observations.into_iter().map(|observation| Observed { turn_id: turn_id.clone(), observation }),
        );
    }
    all
}

fn of_event(before: &State, event: &Event, events: &[Event]) -> Vec<Observation> {
    match &event.payload {
        Payload::ToolUse(call) | Payload::McpToolUse(call) if call.requires_action => {
            let id = call.id.as_str();
            let asked = approval(id, &call.tool, &call.input, call.preview.as_deref(), call.danger.as_ref());
            vec![Observation::PreApprovalRequest(asked)]
        }
        Payload::UserToolConfirmation(confirmation) => {
            let call = call(before, confirmation.tool_use_id.as_str());
            call.map(|call| answered(call, choice(confirmation))).into_iter().collect()
        }
        Payload::ToolResult(result) | Payload::McpToolResult(result) => {
            let call = call(before, result.tool_use_id.as_str()).filter(|call| is_denied(call, events));
            let text = joined_text(&result.content);
            call.map(|call| ended(call, text, result.is_error, event)).into_iter().collect()
        }
        Payload::UserCustomToolResult(result) => {
            let text = joined_text(&result.content);
            let call = call(before, result.tool_use_id.as_str());
            call.map(|call| ended(call, text, result.is_error, event)).into_iter().collect()
        }
        Payload::UserClarifyResult(result) => {
            let call = call(before, result.request_id.as_str());
            call.map(|call| ended(call, result.answer.clone(), false, event)).into_iter().collect()
        }
        Payload::ActionExpired(expired) => match (expired.action, expired.told()) {
            (ActionKind::ToolConfirmation, _) => {
                let call = call(before, &expired.id);
                call.map(|call| answered(call, "timeout")).into_iter().collect()
            }
            (_, Some(told)) => {
                let call = call(before, &expired.id);
                call.map(|call| ended(call, told.to_owned(), true, event)).into_iter().collect()
            }
            (_, None) => Vec::new(),
        },
        Payload::StatusIdle(idle) => match &idle.stop_reason {
            StopReason::RequiresAction { .. } => Vec::new(),
            StopReason::EndTurn { interrupted: true, .. } => {
                vec![Observation::SessionEnd { completed: false, interrupted: true }]
            }
            StopReason::EndTurn { interrupted: false, .. } => vec![
                // What was said before is put in by whoever has the conversation at hand.
                Observation::PostLlmCall {
                    user_message: String::new(),
                    text: last_text(events),
                    history: Vec::new(),
                },
                Observation::SessionEnd { completed: true, interrupted: false },
            ],
            StopReason::Error { .. } => {
                vec![Observation::SessionEnd { completed: false, interrupted: false }]
            }
        },
        Payload::Archived {} => vec![Observation::SessionFinalize],
        _ => Vec::new(),
    }
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
    let (pattern_key, description) = match danger {
        Some(danger) => (danger.pattern_key.clone(), danger.description.clone()),
        None => (format!("tool:{tool}"), format!("The permission policy asks before {tool} runs.")),
    };
    Approval {
        tool_use_id: id.to_owned(),
        tool: tool.to_owned(),
        command: command.map_or_else(|| Value::Object(input.clone()).to_string(), str::to_owned),
        description,
        pattern_key,
    }
}

/// What came of asking.
fn answered(call: &Call, choice: &'static str) -> Observation {
    let approval = approval(&call.id, &call.tool, &call.input, None, call.danger.as_ref());
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
    state.turn.as_ref().map(Turn::calls).unwrap_or_default().iter().find(|call| call.id == id)
}

/// Whether a person said no to the call, before these events or in them. Who runs a tool tells of its end, and
/// nobody ran this one.
fn is_denied(call: &Call, events: &[Event]) -> bool {
    let denies = |event: &Event| match &event.payload {
        Payload::UserToolConfirmation(confirmation) => {
            confirmation.tool_use_id.as_str() == call.id && confirmation.result == Verdict::Deny
        }
        Payload::ActionExpired(expired) => {
            let sudo = call.sudo.as_ref().map(|sudo| sudo.request_id.as_str());
            expired.id == call.id || sudo == Some(expired.id.as_str())
        }
        _ => false,
    };
    matches!(call.progress, Progress::Denied { .. }) || events.iter().any(denies)
}

/// The end of a call that nobody here ran.
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
