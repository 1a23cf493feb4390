//! What happens to the calls of the step under way.

use serde_json::Value;

use super::{Call, CallKind, Phase, Progress, State, SudoNeed};
use crate::context::NOBODY_ANSWERED;
use crate::event::{Event, Payload, Scope, ThreadMessage, Verdict};
use crate::failed_calls::{FailedCalls, call_key};

impl State {
    /// Takes an event into account that is about calls, if it is.
    pub(super) fn apply_to_calls(&mut self, event: &Event) {
        let Some(turn) = &mut self.turn else { return };
        if event.payload.is_from_user() {
            turn.waiting.push(event.sequence);
        }
        turn.note_failed_tool(&event.payload);
        let Phase::Acting { calls, .. } = &mut turn.phase else { return };
        let at = event.created_at;
        match &event.payload {
            Payload::ToolUse(tool_use) => calls.push(Call::of_tool(CallKind::Builtin, tool_use, at)),
            Payload::McpToolUse(tool_use) => calls.push(Call::of_tool(CallKind::Mcp, tool_use, at)),
            Payload::CustomToolUse(custom) => {
                let (id, tool) = (custom.id.as_str(), custom.tool.as_str());
                calls.push(Call::of_question(CallKind::Custom, id, tool, custom.input.clone(), at));
            }
            Payload::ClarifyRequest(request) => {
                let id = request.request_id.as_str();
                calls.push(Call::of_question(CallKind::Clarify, id, "clarify", request.input(), at));
            }
            Payload::SecretRequest(request) => {
                let id = request.request_id.as_str();
                calls.push(Call::of_question(CallKind::Secret, id, "request_secret", request.input(), at));
            }
            Payload::SudoRequest(request) => {
                if let Some(call) = calls.iter_mut().find(|call| call.id == request.tool_use_id.as_str()) {
                    call.asked = true;
                    call.sudo = Some(SudoNeed {
                        request_id: request.request_id.as_str().to_owned(),
                        command: request.command.clone(),
                        answered: false,
                    });
                }
            }
            Payload::ThreadMessageSent(message) => set_thread(calls, message, false),
            Payload::ThreadMessageReceived(message) => set_thread(calls, message, true),
            Payload::ToolStarted(started) => set(calls, started.tool_use_id.as_str(), Progress::Started),
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                let id = result.tool_use_id.as_str();
                note_end(&mut turn.failed_calls, calls, id, result.is_error, turn.model_calls);
                set(calls, id, Progress::Done);
            }
            Payload::UserCustomToolResult(result) => {
                let id = result.tool_use_id.as_str();
                note_end(&mut turn.failed_calls, calls, id, result.is_error, turn.model_calls);
                set(calls, id, Progress::Done);
            }
            Payload::UserClarifyResult(result) => set(calls, result.request_id.as_str(), Progress::Done),
            Payload::UserSecretResult(answered) => {
                let id = answered.request_id.as_str();
                let named = calls.iter().find(|call| call.id == id).and_then(|call| call.input.get("name"));
                if let Some(name) = named.and_then(Value::as_str) {
                    self.secrets.insert(name.to_owned(), event.sequence);
                }
                set(calls, id, Progress::Done);
            }
            Payload::UserSudoResult(answered) => {
                let sudo = calls.iter_mut().filter_map(|call| call.sudo.as_mut());
                sudo.filter(|sudo| sudo.request_id == answered.request_id.as_str())
                    .for_each(|sudo| sudo.answered = true);
            }
            Payload::ActionExpired(expired) => expire(calls, &expired.id),
            Payload::UserToolConfirmation(confirmation) => {
                let id = confirmation.tool_use_id.as_str();
                match confirmation.result {
                    Verdict::Deny => set(calls, id, Progress::Denied { reason: confirmation.reason.clone() }),
                    Verdict::Allow => {
                        set(calls, id, Progress::Ready);
                        let asked = calls.iter().find(|call| call.id == id);
                        if let Some(budget) = asked.and_then(|call| call.budget) {
                            turn.over_budget = None;
                            let of_session = budget.is_of_session();
                            let allowances =
                                if of_session { &mut self.allowances } else { &mut turn.allowances };
                            *allowances.entry(budget).or_default() += 1;
                        } else if confirmation.scope != Scope::Once {
                            self.allowed_tools.extend(confirmation.grants().map(str::to_owned));
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

fn note_end(failed: &mut FailedCalls, calls: &[Call], id: &str, is_error: bool, made_by: u32) {
    if let Some(call) = calls.iter().find(|call| call.id == id) {
        failed.note(call_key(&call.tool, &call.input), &call.tool, is_error, made_by);
    }
}

/// Nobody answered in time: a call of ours counts as denied, and any other has ended.
fn expire(calls: &mut [Call], id: &str) {
    let is_meant =
        |call: &&mut Call| call.id == id || call.sudo.as_ref().is_some_and(|sudo| sudo.request_id == id);
    if let Some(call) = calls.iter_mut().find(is_meant) {
        call.progress = match call.kind {
            CallKind::Builtin | CallKind::Mcp => {
                Progress::Denied { reason: Some(NOBODY_ANSWERED.to_owned()) }
            }
            CallKind::Custom | CallKind::Clarify | CallKind::Secret => Progress::Done,
        };
    }
}

fn set_thread(calls: &mut [Call], message: &ThreadMessage, done: bool) {
    let Some(tool_use_id) = &message.tool_use_id else { return };
    if let Some(call) = calls.iter_mut().find(|call| call.id == tool_use_id.as_str()) {
        call.threads.insert(message.thread_id.as_str().to_owned(), done);
    }
}

fn set(calls: &mut [Call], id: &str, progress: Progress) {
    if let Some(call) = calls.iter_mut().find(|call| call.id == id) {
        call.progress = progress;
    }
}
