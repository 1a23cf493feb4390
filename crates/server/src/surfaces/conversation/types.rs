//! Conversation events as they are on the wire, the same by long poll, by stream and by webhook.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// One event of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum ConversationEvent {
    /// What the user said.
    UserMessage(Message),
    /// What the agent said before it went on working.
    Preamble(Message),
    /// What the agent answered.
    AssistantMessage(Message),
    /// What a person answered beside the agent or in its place.
    HumanAgentMessage(HumanAgentMessage),
    /// How far the turn is.
    Status(Status),
    /// The finished tool calls of one step.
    Tool(Tool),
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConversationMessage")]
pub(crate) struct Message {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) text: String,
}

/// What all events have.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConversationPlace")]
pub(crate) struct Place {
    /// Its place in the session. Offsets increase, and have gaps.
    pub(crate) offset: u64,
    /// When it was appended, by RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub(crate) created_at: String,
}

/// Something that a person said.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct HumanAgentMessage {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) text: String,
    /// What the person is called.
    pub(crate) author: String,
}

/// How far a turn is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConversationStatus")]
pub(crate) struct Status {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) status: StatusName,
    /// What it does, while it is `processing`.
    pub(crate) stage: Option<String>,
    /// What went wrong, if it is `error`.
    pub(crate) error_detail: Option<String>,
}

/// The steps of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StatusName {
    /// The message is there.
    Acknowledged,
    /// The answer is being written.
    Typing,
    /// The agent works, or waits for somebody (`stage` `waiting`).
    Processing,
    /// The turn is over.
    Ready,
    /// The turn was ended by somebody.
    Cancelled,
    /// The turn failed.
    Error,
}

impl StatusName {
    /// The status of this name.
    pub(crate) fn read(name: &str) -> Option<Self> {
        Some(match name {
            "acknowledged" => StatusName::Acknowledged,
            "typing" => StatusName::Typing,
            "processing" => StatusName::Processing,
            "ready" => StatusName::Ready,
            "cancelled" => StatusName::Cancelled,
            "error" => StatusName::Error,
            _ => return None,
        })
    }
}

/// The finished tool calls of one step.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConversationTool")]
pub(crate) struct Tool {
    #[serde(flatten)]
    pub(crate) place: Place,
    pub(crate) tool_calls: Vec<ToolCall>,
}

/// A tool call with its result.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ConversationToolCall")]
pub(crate) struct ToolCall {
    /// `built-in:<tool>`, `custom:<tool>` or `<MCP server>:<tool>`.
    pub(crate) tool_id: String,
    pub(crate) arguments: Map<String, Value>,
    /// The tool's own JSON object, `{"text": …}`, or `{"error": …}`.
    pub(crate) result: Map<String, Value>,
}

impl ConversationEvent {
    /// Which of [`KINDS`] it is.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            ConversationEvent::UserMessage(_) => "user_message",
            ConversationEvent::Preamble(_) => "preamble",
            ConversationEvent::AssistantMessage(_) => "assistant_message",
            ConversationEvent::HumanAgentMessage(_) => "human_agent_message",
            ConversationEvent::Status(_) => "status",
            ConversationEvent::Tool(_) => "tool",
        }
    }
}

/// All kinds.
pub(super) const KINDS: [&str; 6] =
    ["user_message", "preamble", "assistant_message", "human_agent_message", "status", "tool"];
