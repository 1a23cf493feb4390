//! The log in raw shape: each conversation event, with who it is from and the turn that it belongs to.

use petasos_core::amendments::Amendments;
use petasos_core::event::{ApplicationContent, Event, Payload, StopReason};
use petasos_core::session::SessionHeader;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::GUEST;
use super::types::RawEvent;
use crate::surfaces::conversation::types::{ConversationEvent, Status, StatusName, ToolCall};
use crate::surfaces::conversation::{ConversationView, Fold, place};

/// What marks a message that the agent goes on working after.
const PREAMBLE: &str = "__preamble__";
/// What `stage` says when a turn is over.
const COMPLETED: &str = "completed";

/// The fold of a log into raw events.
pub(super) struct RawView {
    view: ConversationView,
    /// The turn under way.
    trace: Option<String>,
    agent: String,
    customer: String,
    /// What was changed about events since.
    amendments: Amendments,
}

impl RawView {
    pub(super) fn of(header: &SessionHeader, amendments: Amendments) -> Self {
        RawView {
            view: ConversationView::default(),
            trace: None,
            agent: header.agent_id.to_string(),
            customer: header.user_id.clone().unwrap_or_else(|| GUEST.to_owned()),
            amendments,
        }
    }

    /// Whom a message is from.
    fn participant(&self, source: &str) -> Value {
        let id = if source == "customer" { &self.customer } else { &self.agent };
        json!({ "id": id, "display_name": id })
    }

    fn message(&self, source: &'static str, text: &str, tags: &[&str]) -> Shape {
        let data = json!({ "message": text, "participant": self.participant(source), "tags": tags });
        Shape { source: source.to_owned(), kind: "message", data }
    }

    /// What an event of the log is, if it is anything.
    fn shape(&mut self, event: &Event) -> Option<Shape> {
        let shown = self.view.push(event);
        match (&event.payload, shown) {
            (Payload::PersonMessage(said), _) => Some(match &said.author {
                Some(author) => {
                    let participant = json!({ "id": said.author_id, "display_name": author });
                    said_by("human_agent", &said.text, participant)
                }
                None => {
                    let source = "human_agent_on_behalf_of_ai_agent";
                    said_by(source, &said.text, self.participant("ai_agent"))
                }
            }),
            (Payload::PersonNote(note), _) => {
                let participant = json!({ "id": null, "display_name": note.author });
                Some(said_by("internal_note", &note.text, participant))
            }
            (Payload::ApplicationEvent(added), _) => Some(match &added.content {
                ApplicationContent::Custom { data } => {
                    Shape { source: added.source.clone(), kind: "custom", data: data.clone() }
                }
                ApplicationContent::Status { status, data } => Shape {
                    source: added.source.clone(),
                    kind: "status",
                    data: json!({ "status": status, "data": data }),
                },
            }),
            (_, Some(shown)) => Some(self.of_typed(shown)),
            (_, None) => None,
        }
    }

    fn of_typed(&self, shown: ConversationEvent) -> Shape {
        match shown {
            ConversationEvent::UserMessage(message) => self.message("customer", &message.text, &[]),
            ConversationEvent::Preamble(message) => self.message("ai_agent", &message.text, &[PREAMBLE]),
            ConversationEvent::AssistantMessage(message) => self.message("ai_agent", &message.text, &[]),
            ConversationEvent::HumanAgentMessage(message) => {
                said_by("human_agent", &message.text, json!({ "display_name": message.author }))
            }
            ConversationEvent::Status(status) => {
                Shape { source: "ai_agent".to_owned(), kind: "status", data: status_data(status) }
            }
            ConversationEvent::Tool(tool) => {
                let calls: Vec<Value> = tool.tool_calls.into_iter().map(call_data).collect();
                Shape { source: "system".to_owned(), kind: "tool", data: json!({ "tool_calls": calls }) }
            }
        }
    }
}

/// What is particular to one event.
struct Shape {
    source: String,
    kind: &'static str,
    data: Value,
}

fn said_by(source: &str, text: &str, participant: Value) -> Shape {
    let data = json!({ "message": text, "participant": participant });
    Shape { source: source.to_owned(), kind: "message", data }
}

fn status_data(status: Status) -> Value {
    let data = match status.status {
        StatusName::Ready => json!({ "stage": COMPLETED }),
        StatusName::Error => json!({ "exception": status.error_detail }),
        _ => status.stage.map_or_else(|| json!({}), |stage| json!({ "stage": stage })),
    };
    json!({ "status": status.status, "data": data })
}

fn call_data(call: ToolCall) -> Value {
    let result = json!({ "data": call.result, "metadata": {}, "control": {} });
    json!({ "tool_id": call.tool_id, "arguments": call.arguments, "result": result })
}

impl Fold for RawView {
    type Shown = RawEvent;

    fn push(&mut self, event: &Event) -> Option<RawEvent> {
        if event.payload.opens_turn() {
            self.trace = Some(trace_id(event));
        }
        let shape = self.shape(event);
        // What others say while a turn is under way is not part of it.
        let is_aside = event.payload.is_sent() && !event.payload.opens_turn();
        let trace = self.trace.clone().filter(|_| !is_aside).unwrap_or_else(|| trace_id(event));
        if let Payload::StatusIdle(idle) = &event.payload
            && !matches!(idle.stop_reason, StopReason::RequiresAction { .. })
        {
            self.trace = None;
        }
        let Shape { source, kind, data } = shape?;
        let place = place(event);
        Some(RawEvent {
            id: event.id().to_string(),
            source,
            kind,
            offset: place.offset,
            creation_utc: place.created_at,
            trace_id: trace.clone(),
            correlation_id: trace,
            data,
            metadata: self.amendments.metadata_of(event),
            deleted: false,
        })
    }
}

/// Names the turn that an event opens, in the form of a trace id: 32 hexadecimal digits.
fn trace_id(event: &Event) -> String {
    let digest = Sha256::digest(event.id().to_string().as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
