//! What a model reads: the fold of a log into a conversation.
//!
//! Every tool call has exactly one result here, in the order of the calls, whatever order the log has and
//! whether or not the call was ever carried out: providers refuse anything else.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::event::{Block, Event, Payload, StopReason, joined_text};
use crate::model::{AssistantPart, Message, ToolOutcome};

/// The conversation so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// Messages with the sequence of the event that completed them.
    messages: Vec<(u64, Message)>,
    /// Whether what the agent says next belongs to a new message.
    fresh: bool,
    /// The calls of the last assistant message, until all have results.
    open: Vec<OpenCall>,
    /// Steering that no model call has seen yet.
    steers: BTreeMap<u64, String>,
    /// The event that opened the newest turn.
    opened_by: u64,
    /// What the system prompt holds besides the instructions.
    prompt: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct OpenCall {
    id: String,
    name: String,
    result: Option<(String, bool)>,
}

impl Context {
    /// The conversation, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.iter().map(|(_, message)| message.clone()).collect()
    }

    /// The system prompt of an agent with these instructions: the same in every call of the session.
    pub fn system(&self, instructions: &str) -> String {
        match &self.prompt {
            None => instructions.to_owned(),
            Some(prompt) if instructions.is_empty() => prompt.clone(),
            Some(prompt) => format!("{instructions}\n\n{prompt}"),
        }
    }

    /// The place among the messages of the one that opened the newest turn.
    pub fn turn_message(&self) -> Option<usize> {
        self.messages.iter().position(|(sequence, _)| *sequence == self.opened_by)
    }

    /// Takes the next event of the log into account.
    pub fn apply(&mut self, event: &Event) {
        let at = event.sequence;
        match &event.payload {
            Payload::UserMessage(message) => {
                self.close_calls(at, "This call was not carried out.");
                self.messages.push((at, Message::User(message.content.clone())));
                self.opened_by = at;
            }
            Payload::UserSteer(steer) => {
                self.steers.insert(at, steer.message.clone());
            }
            Payload::ModelStarted(started) => {
                self.close_calls(at, "This call was not carried out.");
                for sequence in &started.takes_up {
                    if let Some(text) = self.steers.remove(sequence) {
                        let text = format!("[Guidance from the user while you work]\n{text}");
                        self.messages.push((at, Message::User(vec![Block::text(text)])));
                    }
                }
                self.fresh = true;
            }
            Payload::AgentThinking(thinking) => {
                let (text, opaque) = (thinking.text.clone(), thinking.opaque.clone());
                self.say(at, AssistantPart::Thinking { text, opaque });
            }
            Payload::AgentMessage(message) => self.say(at, AssistantPart::Text(message.text.clone())),
            Payload::ToolUse(call) | Payload::McpToolUse(call) => {
                self.call(at, call.id.as_str(), &call.tool, call.input.clone());
            }
            Payload::CustomToolUse(call) => self.call(at, call.id.as_str(), &call.tool, call.input.clone()),
            Payload::ClarifyRequest(request) => {
                self.call(at, request.request_id.as_str(), "clarify", request.input());
            }
            Payload::SecretRequest(request) => {
                self.call(at, request.request_id.as_str(), "request_secret", request.input());
            }
            Payload::StatusIdle(idle) if !matches!(idle.stop_reason, StopReason::RequiresAction { .. }) => {
                self.close_calls(at, "This call was not carried out: the turn was stopped.");
            }
            Payload::Compacted(compacted) => {
                self.messages.retain(|(sequence, _)| *sequence > compacted.through);
                let text = format!("[Summary of the conversation so far]\n{}", compacted.summary);
                self.messages.insert(0, (at, Message::User(vec![Block::text(text)])));
            }
            Payload::PromptPrepared(prepared) => self.prompt = Some(prepared.text.clone()),
            _ => self.apply_result(&event.payload),
        }
    }

    fn apply_result(&mut self, payload: &Payload) {
        match payload {
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                self.result(result.tool_use_id.as_str(), joined_text(&result.content), result.is_error);
            }
            Payload::UserCustomToolResult(result) => {
                self.result(result.tool_use_id.as_str(), joined_text(&result.content), result.is_error);
            }
            Payload::UserClarifyResult(result) => {
                let answer = match result.answer.as_str() {
                    "" => "The user skipped the question. Use your best judgement.",
                    answer => answer,
                };
                self.result(result.request_id.as_str(), answer.to_owned(), false);
            }
            Payload::UserSecretResult(answered) => {
                let text = "The user supplied it. It is set in the environment of this session's commands.";
                self.result(answered.request_id.as_str(), text.to_owned(), false);
            }
            _ => {}
        }
    }

    fn say(&mut self, at: u64, part: AssistantPart) {
        match self.messages.last_mut() {
            Some((sequence, Message::Assistant(parts))) if !self.fresh => {
                *sequence = at;
                parts.push(part);
            }
            _ => self.messages.push((at, Message::Assistant(vec![part]))),
        }
        self.fresh = false;
    }

    fn call(&mut self, at: u64, id: &str, name: &str, input: Map<String, Value>) {
        self.say(at, AssistantPart::ToolCall { id: id.to_owned(), name: name.to_owned(), input });
        self.open.push(OpenCall { id: id.to_owned(), name: name.to_owned(), result: None });
    }

    fn result(&mut self, id: &str, text: String, is_error: bool) {
        if let Some(call) = self.open.iter_mut().find(|call| call.id == id && call.result.is_none()) {
            call.result = Some((text, is_error));
        }
    }

    /// Turns the open calls into one message of results; those without one get `otherwise`.
    fn close_calls(&mut self, at: u64, otherwise: &str) {
        if self.open.is_empty() {
            return;
        }
        let outcomes = std::mem::take(&mut self.open).into_iter().map(|call| {
            let (text, is_error) = call.result.unwrap_or_else(|| (otherwise.to_owned(), true));
            ToolOutcome { id: call.id, name: call.name, text, is_error }
        });
        self.messages.push((at, Message::ToolResults(outcomes.collect())));
    }
}
