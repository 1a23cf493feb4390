//! The types of the Agent Application Protocol, version 3, as they are on the wire.
//!
//! Names and shapes are the protocol's own. Nothing here decides anything: what a request means is read in
//! [`settings`](super::settings), [`seed`](super::seed) and [`answers`](super::answers), what is answered is made of
//! the log in [`story`](super::story). Fields that the protocol does not know are passed over.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol.
pub(super) const VERSION: u32 = 3;

/// What stands for the value of a secret option, since the value itself is never shown.
pub(super) const PLACEHOLDER: &str = "***";

/// Answer of `GET /meta`.
#[derive(Serialize, JsonSchema)]
pub(super) struct GetMeta {
    /// The version of the protocol: 3.
    pub(super) version: u32,
    /// The agents that sessions can be made with.
    pub(super) agents: Vec<AgentInfo>,
}

/// An agent, and what it can do.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgentInfo {
    /// Names it in requests.
    pub(super) name: String,
    /// What people call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// Its version.
    pub(super) version: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// Its tools that sessions can turn on.
    pub(super) tools: Vec<ToolSpec>,
    /// What sessions can choose.
    pub(super) options: Vec<AgentOption>,
    /// What it supports.
    pub(super) capabilities: AgentCapabilities,
}

/// Something that a session can choose about its agent.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase")]
#[schemars(rename = "AapAgentOption")]
pub(super) enum AgentOption {
    /// Any text.
    Text(OptionFields),
    /// A text that is never shown again.
    Secret(OptionFields),
    /// One of `options`.
    Select {
        #[serde(flatten)]
        fields: OptionFields,
        /// The choices.
        options: Vec<String>,
    },
}

/// What all options have.
#[derive(Serialize, JsonSchema)]
pub(super) struct OptionFields {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// What holds unless a session chooses.
    pub(super) default: String,
}

/// What an agent supports: whatever is there.
#[derive(Serialize, JsonSchema)]
pub(super) struct AgentCapabilities {
    pub(super) history: HistoryCapabilities,
    pub(super) stream: StreamCapabilities,
    pub(super) application: ApplicationCapabilities,
    /// Absent if the agent's model takes no images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image: Option<ImageCapabilities>,
}

/// The histories that can be asked for.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct HistoryCapabilities {
    compacted: Supported,
    full: Supported,
}

/// The ways in which a turn can be answered.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct StreamCapabilities {
    delta: Supported,
    message: Supported,
    none: Supported,
}

/// What an application can bring.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct ApplicationCapabilities {
    tools: Supported,
}

/// The images that content can hold.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct ImageCapabilities {
    http: Supported,
    data: Supported,
}

/// An empty object: it is there, so it is supported.
#[derive(Serialize, JsonSchema, Default)]
pub(super) struct Supported {}

/// The agent of a session, as it is configured for it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct AgentConfig {
    /// The agent.
    pub(super) name: String,
    /// Its tools that are on; none if this is left out.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) tools: Vec<ServerToolRef>,
    /// Values of its options; those left out have their defaults.
    #[serde(default, deserialize_with = "null_is_absent", skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) options: BTreeMap<String, String>,
}

/// A tool of the agent that is on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct ServerToolRef {
    /// The tool.
    pub(super) name: String,
    /// Whether it runs without asking.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) trust: bool,
}

/// A tool: one of the agent's, or one that the application runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct ToolSpec {
    /// What the model calls.
    pub(super) name: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// What it does, for the model.
    pub(super) description: String,
    /// JSON Schema of its arguments.
    pub(super) parameters: Map<String, Value>,
}

/// A session.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionInfo {
    pub(super) session_id: String,
    /// Its agent. Secret options are shown as `***`.
    pub(super) agent: AgentConfig,
    /// The tools that the application runs.
    pub(super) tools: Vec<ToolSpec>,
}

/// Answer of `GET /sessions`.
#[derive(Serialize, JsonSchema)]
pub(super) struct GetSessions {
    pub(super) sessions: Vec<SessionInfo>,
    /// Where to go on, as `after`; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
}

/// Answer of `GET /sessions/{id}/history`.
#[derive(Serialize, JsonSchema)]
pub(super) struct GetHistory {
    pub(super) history: History,
}

/// The history that was asked for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum History {
    /// What the model reads now.
    Compacted(Vec<HistoryMessage>),
    /// Everything that was said.
    Full(Vec<HistoryMessage>),
}

/// Body of `POST /sessions`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PostSessions {
    pub(super) agent: AgentConfig,
    /// A conversation to begin with.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) messages: Vec<HistoryMessage>,
    /// Tools that the application runs.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) tools: Vec<ToolSpec>,
}

/// Answer of `POST /sessions`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionCreated {
    pub(super) session_id: String,
}

/// Body of `POST /sessions/{id}/turns`. What it changes about the session stays changed.
#[derive(Deserialize, JsonSchema)]
pub(super) struct PostTurn {
    pub(super) agent: Option<AgentOverride>,
    /// How the turn is answered.
    #[serde(default, deserialize_with = "null_is_absent")]
    pub(super) stream: StreamMode,
    /// A user's message, or answers to all calls that the session waits for.
    pub(super) messages: Vec<TurnMessage>,
    /// Tools that the application runs, in place of those so far.
    pub(super) tools: Option<Vec<ToolSpec>>,
}

/// What a turn changes about its session's agent.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AgentOverride {
    /// The agent itself, which cannot be changed.
    pub(super) name: Option<String>,
    /// The agent's tools that are on, in place of those so far.
    pub(super) tools: Option<Vec<ServerToolRef>>,
    /// Values of options; the others stay as they are.
    pub(super) options: Option<BTreeMap<String, String>>,
}

/// How a turn is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StreamMode {
    /// With events; text comes in pieces.
    Delta,
    /// With events; text comes whole.
    Message,
    /// With one JSON body, when the turn is over.
    #[default]
    None,
}

/// Answer of `POST /sessions/{id}/turns` in the mode `none`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentResponse {
    pub(super) stop_reason: StopReason,
    /// What the agent said, and what came of the tools that ran on the server.
    pub(super) messages: Vec<HistoryMessage>,
}

/// An entry of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum HistoryMessage {
    System {
        content: String,
    },
    User {
        content: Content,
    },
    Assistant {
        content: Content,
    },
    #[serde(rename_all = "camelCase")]
    Tool {
        tool_call_id: String,
        content: Content,
    },
}

/// What can be said in a turn.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(super) enum TurnMessage {
    User {
        content: Content,
    },
    /// The result of a call that the application carried out.
    #[serde(rename_all = "camelCase")]
    Tool {
        tool_call_id: String,
        content: Content,
    },
    /// Whether a call of an untrusted tool may run. It is never part of a history.
    #[serde(rename_all = "camelCase")]
    ToolPermission {
        tool_call_id: String,
        granted: bool,
        reason: Option<String>,
    },
}

/// A text, or a list of blocks.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ContentBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_call_id: String,
        name: String,
        input: Map<String, Value>,
    },
    Image {
        /// An `https://` link or a base64 `data:` URI.
        url: String,
    },
}

/// Why a turn stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "AapStopReason")]
pub(super) enum StopReason {
    /// The agent is done.
    EndTurn,
    /// Calls wait for the application: for a result, or for a permission.
    ToolUse,
    /// The model reached its limit.
    MaxTokens,
    /// The model declined.
    Refusal,
    /// Something failed.
    Error,
}

/// The body of every error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AapError")]
pub(super) struct ErrorBody {
    /// What happened and what to do.
    pub(super) error: String,
}

/// The data of the events of a stream. The name of each is on its `event:` line.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum TurnEvent {
    /// `turn_start`: always first.
    // Anything would fit an object without fields.
    #[schemars(extend("additionalProperties" = false))]
    TurnStart {},
    /// `text_delta`: a piece of text.
    TextDelta { delta: String },
    /// `thinking_delta`: a piece of reasoning.
    ThinkingDelta { delta: String },
    /// `text`: the text of a message.
    Text { text: String },
    /// `thinking`: the reasoning of a message.
    Thinking { thinking: String },
    /// `tool_call`: the agent calls a tool.
    #[serde(rename_all = "camelCase")]
    ToolCall { tool_call_id: String, name: String, input: Map<String, Value> },
    /// `tool_result`: what came of a tool that ran on the server.
    #[serde(rename_all = "camelCase")]
    ToolResult { tool_call_id: String, content: Content },
    /// `turn_stop`: always last.
    #[serde(rename_all = "camelCase")]
    TurnStop { stop_reason: StopReason },
}

impl TurnEvent {
    /// What stands on the `event:` line.
    pub(super) fn name(&self) -> &'static str {
        match self {
            TurnEvent::TurnStart {} => "turn_start",
            TurnEvent::TextDelta { .. } => "text_delta",
            TurnEvent::ThinkingDelta { .. } => "thinking_delta",
            TurnEvent::Text { .. } => "text",
            TurnEvent::Thinking { .. } => "thinking",
            TurnEvent::ToolCall { .. } => "tool_call",
            TurnEvent::ToolResult { .. } => "tool_result",
            TurnEvent::TurnStop { .. } => "turn_stop",
        }
    }
}

/// Reads a field for which some clients write `null` in place of leaving it out.
fn null_is_absent<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

impl<'de> Deserialize<'de> for Content {
    /// Reads by what is there, so that an error is about the block that is wrong and not about all of them.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of content blocks")
            }

            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Content, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(Content::Blocks)
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}
