//! The log as a conversation: at most one conversation event for each event of the log.
//!
//! This is a pure fold, and the only way from the log to conversation events. A fold that starts at the beginning of
//! any turn says the same as one that starts at the beginning of the log.

use petasos_core::context::SECRET_SUPPLIED;
use petasos_core::event::{
    ApplicationContent, Block, Event, Payload, Purpose, StopReason, ToolUse, joined_text,
};
use serde_json::{Map, Value};

use super::failure;
use super::types::{
    ConversationEvent, HumanAgentMessage, Message, Place, Status, StatusName, Tool, ToolCall,
};

/// What `stage` says while a turn waits for somebody.
const WAITING: &str = "waiting";

/// The fold of a log into a conversation.
#[derive(Debug, Default)]
pub(crate) struct ConversationView {
    /// Whether the turn under way was shown as `acknowledged`.
    is_acknowledged: bool,
    /// Whether the turn under way was shown as `processing`, a wait for somebody aside.
    is_processing: bool,
    /// Whether the model step under way calls tools, so that what it says is not its last word.
    calls_tools: bool,
    /// The calls of the step, in the order in which the model made them.
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    id: String,
    tool_id: String,
    arguments: Map<String, Value>,
    result: Option<Map<String, Value>>,
    /// Whether somebody outside answers it, and nobody does when the turn is interrupted.
    is_asked: bool,
}

impl ConversationView {
    /// Takes the next event of the log into account, and returns what it is in the conversation.
    pub(crate) fn push(&mut self, event: &Event) -> Option<ConversationEvent> {
        let place = place(event);
        if event.payload.opens_turn() {
            *self = ConversationView::default();
        }
        match &event.payload {
            Payload::UserMessage(message) => {
                let text = joined_text(&message.content);
                (!text.is_empty()).then_some(ConversationEvent::UserMessage(Message { place, text }))
            }
            Payload::PersonMessage(said) => {
                let text = said.text.clone();
                Some(match said.author.clone() {
                    Some(author) => {
                        ConversationEvent::HumanAgentMessage(HumanAgentMessage { place, text, author })
                    }
                    None => ConversationEvent::AssistantMessage(Message { place, text }),
                })
            }
            Payload::StatusRunning {} if !self.is_acknowledged => {
                self.is_acknowledged = true;
                Some(status(place, StatusName::Acknowledged))
            }
            // The turn goes on after somebody was waited for.
            Payload::StatusRunning {} => Some(self.processing(place)),
            Payload::ModelStarted(_) if !self.is_processing => Some(self.processing(place)),
            Payload::Typing {} => Some(status(place, StatusName::Typing)),
            Payload::StatusIdle(idle) => Some(self.idle(place, &idle.stop_reason)),
            Payload::ModelFinished(finished) if finished.purpose == Purpose::Turn => {
                self.calls_tools = finished.tool_calls > 0;
                self.calls.clear();
                None
            }
            Payload::AgentMessage(message) if message.text.is_empty() => None,
            Payload::AgentMessage(message) => {
                let message = Message { place, text: message.text.clone() };
                Some(if self.calls_tools {
                    ConversationEvent::Preamble(message)
                } else {
                    ConversationEvent::AssistantMessage(message)
                })
            }
            Payload::ApplicationEvent(added) => match &added.content {
                ApplicationContent::Status { status: name, data } => said_status(place, name, data),
                ApplicationContent::Custom { .. } => None,
            },
            Payload::UserInterrupt(_) => self.interrupted(place),
            payload => self.tool(place, payload),
        }
    }

    fn processing(&mut self, place: Place) -> ConversationEvent {
        self.is_processing = true;
        status(place, StatusName::Processing)
    }

    /// What was asked has no answer. If other calls of the step ran or are being ended, it is shown with them.
    fn interrupted(&mut self, place: Place) -> Option<ConversationEvent> {
        if self.calls.iter().all(|call| call.is_asked && call.result.is_none()) {
            return None;
        }
        for call in self.calls.iter_mut().filter(|call| call.is_asked && call.result.is_none()) {
            call.result = Some(text("error", "The turn was interrupted before this was answered."));
        }
        self.completed(place)
    }

    fn idle(&mut self, place: Place, stop_reason: &StopReason) -> ConversationEvent {
        let (name, stage, error_detail) = match stop_reason {
            StopReason::RequiresAction { .. } => {
                let waiting = Some(WAITING.to_owned());
                return ConversationEvent::Status(Status {
                    place,
                    status: StatusName::Processing,
                    stage: waiting,
                    error_detail: None,
                });
            }
            StopReason::EndTurn { interrupted: false, .. } => (StatusName::Ready, None, None),
            StopReason::EndTurn { interrupted: true, .. } => (StatusName::Cancelled, None, None),
            StopReason::Error { code, message } => {
                (StatusName::Error, None, Some(failure::summary(code, message)))
            }
        };
        *self = ConversationView::default();
        ConversationEvent::Status(Status { place, status: name, stage, error_detail })
    }

    fn tool(&mut self, place: Place, payload: &Payload) -> Option<ConversationEvent> {
        match payload {
            // Whether to go on over a budget is no call of the model's.
            Payload::ToolUse(call) if call.budget.is_some() => None,
            Payload::ToolUse(call) | Payload::McpToolUse(call) => {
                self.call(call.id.as_str(), tool_id(call), call.input.clone());
                None
            }
            Payload::CustomToolUse(call) => {
                self.ask(call.id.as_str(), format!("custom:{}", call.tool), call.input.clone());
                None
            }
            Payload::ClarifyRequest(request) => {
                self.ask(request.request_id.as_str(), built_in("clarify"), request.input());
                None
            }
            Payload::SecretRequest(request) => {
                self.ask(request.request_id.as_str(), built_in("request_secret"), request.input());
                None
            }
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                let shown = shown(&result.content, result.is_error);
                self.result(place, result.tool_use_id.as_str(), shown)
            }
            Payload::UserCustomToolResult(result) => {
                let shown = shown(&result.content, result.is_error);
                self.result(place, result.tool_use_id.as_str(), shown)
            }
            Payload::UserClarifyResult(result) => {
                self.result(place, result.request_id.as_str(), text("text", result.told()))
            }
            Payload::UserSecretResult(answered) => {
                self.result(place, answered.request_id.as_str(), text("text", SECRET_SUPPLIED))
            }
            Payload::ActionExpired(expired) => {
                self.result(place, &expired.id, text("error", expired.told()?))
            }
            _ => None,
        }
    }

    fn call(&mut self, id: &str, tool_id: String, arguments: Map<String, Value>) {
        self.calls.push(Call { id: id.to_owned(), tool_id, arguments, result: None, is_asked: false });
    }

    fn ask(&mut self, id: &str, tool_id: String, arguments: Map<String, Value>) {
        self.calls.push(Call { id: id.to_owned(), tool_id, arguments, result: None, is_asked: true });
    }

    /// Notes a result. All calls of a step are in the log before any result, so the last one missing completes it.
    fn result(&mut self, place: Place, id: &str, result: Map<String, Value>) -> Option<ConversationEvent> {
        let call = self.calls.iter_mut().find(|call| call.id == id && call.result.is_none())?;
        call.result = Some(result);
        self.completed(place)
    }

    /// All calls of the step, if none is open.
    fn completed(&mut self, place: Place) -> Option<ConversationEvent> {
        if self.calls.iter().any(|call| call.result.is_none()) {
            return None;
        }
        let tool_calls = std::mem::take(&mut self.calls).into_iter().map(|call| ToolCall {
            tool_id: call.tool_id,
            arguments: call.arguments,
            result: call.result.unwrap_or_default(),
        });
        Some(ConversationEvent::Tool(Tool { place, tool_calls: tool_calls.collect() }))
    }
}

/// Where an event of the log is in the conversation.
pub(crate) fn place(event: &Event) -> Place {
    Place { offset: event.sequence.saturating_sub(1), created_at: format!("{:.3}", event.created_at) }
}

fn status(place: Place, status: StatusName) -> ConversationEvent {
    ConversationEvent::Status(Status { place, status, stage: None, error_detail: None })
}

/// A status that an application gave for somebody who is not the agent.
fn said_status(place: Place, name: &str, data: &Map<String, Value>) -> Option<ConversationEvent> {
    let name = StatusName::read(name)?;
    let field = |field: &str| data.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(ConversationEvent::Status(Status {
        place,
        status: name,
        stage: field("stage").filter(|_| name == StatusName::Processing),
        error_detail: field("exception").filter(|_| name == StatusName::Error),
    }))
}

fn built_in(tool: &str) -> String {
    format!("built-in:{tool}")
}

fn tool_id(call: &ToolUse) -> String {
    match &call.mcp {
        Some(mcp) => format!("{}:{}", mcp.server, mcp.tool),
        None => built_in(&call.tool),
    }
}

/// A tool's result: its own JSON object, or its text under a name that says what it is.
fn shown(content: &[Block], is_error: bool) -> Map<String, Value> {
    let said = joined_text(content);
    if is_error {
        return text("error", said);
    }
    match serde_json::from_str(&said) {
        Ok(Value::Object(object)) => object,
        _ => text("text", said),
    }
}

fn text(name: &str, text: impl Into<Value>) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), text.into())])
}
