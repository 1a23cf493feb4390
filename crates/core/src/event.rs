//! The entries of a session's log.
//!
//! These are the persisted shapes: they change only by addition, and no wire protocol may be served from
//! them directly. Type names follow the Herm events reference where it has one; the rest are internal and
//! start with `span.`, `tool.` or are `session.` entries that no protocol shows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{EventId, RequestId, SessionId, ThreadId, ToolUseId};
use crate::model::{Opaque, Usage};

/// One durable entry of one session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The session whose log this is.
    pub session_id: SessionId,
    /// Its place in the log: 1, 2, 3 … without gaps.
    pub sequence: u64,
    /// When it was appended.
    pub created_at: Timestamp,
    /// When a later event took it up. Only user events are ever waiting; for the others this is `created_at`.
    pub processed_at: Option<Timestamp>,
    /// What happened.
    pub payload: Payload,
}

impl Event {
    /// The id under which every surface shows this event.
    pub fn id(&self) -> EventId {
        EventId { session_id: self.session_id.clone(), sequence: self.sequence }
    }
}

/// A piece of content. Text for now; further kinds are added as variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into() }
    }

    /// The text of this block.
    pub fn as_text(&self) -> &str {
        match self {
            Block::Text { text } => text,
        }
    }
}

/// The text of all blocks, one after another.
pub fn joined_text(content: &[Block]) -> String {
    content.iter().map(Block::as_text).collect()
}

/// What happened, by type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum Payload {
    /// A user's message: opens a turn.
    #[serde(rename = "user.message")]
    UserMessage(UserMessage),
    /// Guidance for the turn under way, or for the next one.
    #[serde(rename = "user.steer")]
    UserSteer(UserSteer),
    /// Ends the turn under way.
    #[serde(rename = "user.interrupt")]
    UserInterrupt(UserInterrupt),
    /// Allows or denies a tool call.
    #[serde(rename = "user.tool_confirmation")]
    UserToolConfirmation(ToolConfirmation),
    /// What the application's own tool returned.
    #[serde(rename = "user.custom_tool_result")]
    UserCustomToolResult(CustomToolResult),
    /// The answer to a clarification.
    #[serde(rename = "user.clarify_result")]
    UserClarifyResult(ClarifyResult),
    /// A sudo password came in. The password itself is never stored.
    #[serde(rename = "user.sudo_result")]
    UserSudoResult(RequestAnswered),
    /// A secret came in. The value itself is never stored.
    #[serde(rename = "user.secret_result")]
    UserSecretResult(RequestAnswered),

    /// A turn started or went on after a pause.
    #[serde(rename = "session.status_running")]
    StatusRunning {},
    /// A turn ended or paused.
    #[serde(rename = "session.status_idle")]
    StatusIdle(StatusIdle),

    /// What the agent said.
    #[serde(rename = "agent.message")]
    AgentMessage(AgentMessage),
    /// What the agent thought.
    #[serde(rename = "agent.thinking")]
    AgentThinking(AgentThinking),
    /// A call of a built-in tool.
    #[serde(rename = "agent.tool_use")]
    ToolUse(ToolUse),
    /// The result of a built-in tool.
    #[serde(rename = "agent.tool_result")]
    ToolResult(ToolResult),
    /// A call of an MCP server's tool.
    #[serde(rename = "agent.mcp_tool_use")]
    McpToolUse(ToolUse),
    /// The result of an MCP server's tool.
    #[serde(rename = "agent.mcp_tool_result")]
    McpToolResult(ToolResult),
    /// A call of a tool that the application runs.
    #[serde(rename = "agent.custom_tool_use")]
    CustomToolUse(CustomToolUse),
    /// A question to the user.
    #[serde(rename = "agent.clarify_request")]
    ClarifyRequest(ClarifyRequest),
    /// A command needs a sudo password.
    #[serde(rename = "agent.sudo_request")]
    SudoRequest(SudoRequest),
    /// The agent needs a secret value.
    #[serde(rename = "agent.secret_request")]
    SecretRequest(SecretRequest),
    /// Work was handed to a subagent.
    #[serde(rename = "agent.thread_message_sent")]
    ThreadMessageSent(ThreadMessage),
    /// A subagent's result came back.
    #[serde(rename = "agent.thread_message_received")]
    ThreadMessageReceived(ThreadMessage),

    /// Internal: a model call is about to start.
    #[serde(rename = "span.model_started")]
    ModelStarted(ModelStarted),
    /// Internal: a model call ended, with what it cost.
    #[serde(rename = "span.model_finished")]
    ModelFinished(ModelFinished),
    /// Internal: a tool is about to start. It is in the log before the tool runs.
    #[serde(rename = "tool.started")]
    ToolStarted(ToolStarted),
    /// Internal: the title was set, or generated.
    #[serde(rename = "session.titled")]
    Titled(Titled),
    /// Internal: the metadata was replaced by this.
    #[serde(rename = "session.metadata_changed")]
    MetadataChanged {
        /// The whole metadata after the change.
        metadata: Map<String, Value>,
    },
    /// Internal: the session was archived.
    #[serde(rename = "session.archived")]
    Archived {},
    /// Internal: what came before is read by the model as this summary from now on.
    #[serde(rename = "session.compacted")]
    Compacted(Compacted),
}

/// Every type name that a Herm client can see in the log, in the order of the events reference.
pub const SHOWN_TYPES: &[&str] = &[
    "user.message",
    "user.steer",
    "user.interrupt",
    "user.tool_confirmation",
    "user.custom_tool_result",
    "user.clarify_result",
    "user.sudo_result",
    "user.secret_result",
    "session.status_running",
    "session.status_idle",
    "agent.message",
    "agent.thinking",
    "agent.tool_use",
    "agent.tool_result",
    "agent.mcp_tool_use",
    "agent.mcp_tool_result",
    "agent.custom_tool_use",
    "agent.clarify_request",
    "agent.sudo_request",
    "agent.secret_request",
    "agent.thread_message_sent",
    "agent.thread_message_received",
];

impl Payload {
    /// The type name under which the event is stored and filtered.
    pub fn type_name(&self) -> &'static str {
        match self {
            Payload::UserMessage(_) => "user.message",
            Payload::UserSteer(_) => "user.steer",
            Payload::UserInterrupt(_) => "user.interrupt",
            Payload::UserToolConfirmation(_) => "user.tool_confirmation",
            Payload::UserCustomToolResult(_) => "user.custom_tool_result",
            Payload::UserClarifyResult(_) => "user.clarify_result",
            Payload::UserSudoResult(_) => "user.sudo_result",
            Payload::UserSecretResult(_) => "user.secret_result",
            Payload::StatusRunning {} => "session.status_running",
            Payload::StatusIdle(_) => "session.status_idle",
            Payload::AgentMessage(_) => "agent.message",
            Payload::AgentThinking(_) => "agent.thinking",
            Payload::ToolUse(_) => "agent.tool_use",
            Payload::ToolResult(_) => "agent.tool_result",
            Payload::McpToolUse(_) => "agent.mcp_tool_use",
            Payload::McpToolResult(_) => "agent.mcp_tool_result",
            Payload::CustomToolUse(_) => "agent.custom_tool_use",
            Payload::ClarifyRequest(_) => "agent.clarify_request",
            Payload::SudoRequest(_) => "agent.sudo_request",
            Payload::SecretRequest(_) => "agent.secret_request",
            Payload::ThreadMessageSent(_) => "agent.thread_message_sent",
            Payload::ThreadMessageReceived(_) => "agent.thread_message_received",
            Payload::ModelStarted(_) => "span.model_started",
            Payload::ModelFinished(_) => "span.model_finished",
            Payload::ToolStarted(_) => "tool.started",
            Payload::Titled(_) => "session.titled",
            Payload::MetadataChanged { .. } => "session.metadata_changed",
            Payload::Archived {} => "session.archived",
            Payload::Compacted(_) => "session.compacted",
        }
    }

    /// Whether a person or application sent this, so that it waits until the session takes it up.
    pub fn is_from_user(&self) -> bool {
        self.type_name().starts_with("user.")
    }

    /// The sequences of the user events that this event takes up.
    pub fn takes_up(&self) -> &[u64] {
        match self {
            Payload::ModelStarted(started) => &started.takes_up,
            Payload::StatusIdle(idle) => &idle.takes_up,
            _ => &[],
        }
    }
}

/// Payload of `user.message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What the user said.
    pub content: Vec<Block>,
}

/// Payload of `user.steer`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserSteer {
    /// The guidance.
    pub message: String,
}

/// Payload of `user.interrupt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserInterrupt {
    /// A reason or a note for people who read the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Allow or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The tool may run.
    Allow,
    /// The tool must not run.
    Deny,
}

/// How far a confirmation reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call only.
    #[default]
    Once,
    /// This tool for the rest of the session.
    Session,
    /// This tool for every session of the same agent and user.
    Always,
}

/// Payload of `user.tool_confirmation`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolConfirmation {
    /// The call that waits.
    pub tool_use_id: ToolUseId,
    /// The decision.
    pub result: Verdict,
    /// How far it reaches.
    #[serde(default)]
    pub scope: Scope,
    /// Why it was denied, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The tool's name, filled in when the answer is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// Payload of `user.custom_tool_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomToolResult {
    /// The call that this answers.
    pub tool_use_id: ToolUseId,
    /// What the model is told.
    pub content: Vec<Block>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
}

/// Payload of `user.clarify_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClarifyResult {
    /// The question that this answers.
    pub request_id: RequestId,
    /// The answer; empty means that the user skipped it.
    pub answer: String,
}

/// Payload of `user.sudo_result` and `user.secret_result`: that an answer came, never the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswered {
    /// The request that was answered.
    pub request_id: RequestId,
}

/// Payload of `session.status_idle`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusIdle {
    /// Why the session is idle.
    pub stop_reason: StopReason,
    /// User events that this settles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes_up: Vec<u64>,
}

/// Why a session became idle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StopReason {
    /// The turn is over.
    EndTurn {
        /// Why the model stopped, when it was not of its own accord.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<CutShort>,
        /// Whether a user interrupted it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// The turn failed.
    Error {
        /// A stable code for programs.
        code: String,
        /// What happened and what to do, for people.
        message: String,
    },
    /// The turn waits for answers from outside.
    RequiresAction {
        /// The ids of the actions, in the order in which they were raised.
        event_ids: Vec<String>,
    },
}

impl StopReason {
    /// An ordinary end of a turn.
    pub fn end_turn() -> Self {
        StopReason::EndTurn { reason: None, interrupted: false }
    }
}

/// Why a model's answer is shorter than it wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CutShort {
    /// It reached its output limit.
    MaxTokens,
    /// It declined to answer.
    Refusal,
}

/// Payload of `agent.message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMessage {
    /// The whole text.
    pub text: String,
}

/// Payload of `agent.thinking`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentThinking {
    /// The readable part, possibly empty.
    pub text: String,
    /// What the provider wants back to continue this reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// Whether running a tool twice could do harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// It only looks.
    ReadOnly,
    /// It may change something, and is never run twice by itself.
    SideEffect,
}

/// Payload of `agent.tool_use` and `agent.mcp_tool_use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Names this call.
    pub id: ToolUseId,
    /// The tool's name.
    pub tool: String,
    /// Its arguments.
    pub input: Map<String, Value>,
    /// Whether it changes anything.
    pub effect: ToolEffect,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Whether it waits for a confirmation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requires_action: bool,
}

/// Payload of `agent.tool_result` and `agent.mcp_tool_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call that this ends.
    pub tool_use_id: ToolUseId,
    /// The tool's name.
    pub tool: String,
    /// What the model is told.
    pub content: Vec<Block>,
    /// Whether the tool failed, was denied or never ran.
    pub is_error: bool,
}

/// Payload of `agent.custom_tool_use`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CustomToolUse {
    /// Names this call.
    pub id: ToolUseId,
    /// The tool's name in the agent's definition.
    pub tool: String,
    /// Its arguments.
    pub input: Map<String, Value>,
}

/// Payload of `agent.clarify_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClarifyRequest {
    /// What the answer refers to.
    pub request_id: RequestId,
    /// The question.
    pub question: String,
    /// Offered answers; none for an open question.
    pub choices: Option<Vec<String>>,
}

impl ClarifyRequest {
    /// The arguments of the `clarify` call that raised it.
    pub fn input(&self) -> Map<String, Value> {
        object([("question", self.question.as_str().into()), ("choices", self.choices.clone().into())])
    }
}

fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Payload of `agent.sudo_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SudoRequest {
    /// What the answer refers to.
    pub request_id: RequestId,
    /// The call that waits for the password.
    pub tool_use_id: ToolUseId,
    /// The command.
    pub command: String,
}

/// Payload of `agent.secret_request`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRequest {
    /// What the answer refers to.
    pub request_id: RequestId,
    /// The environment variable that will hold the value.
    pub name: String,
    /// What to tell the person who is asked.
    pub prompt: String,
}

impl SecretRequest {
    /// The arguments of the `request_secret` call that raised it.
    pub fn input(&self) -> Map<String, Value> {
        object([("name", self.name.as_str().into()), ("prompt", self.prompt.as_str().into())])
    }
}

/// Payload of `agent.thread_message_sent` and `agent.thread_message_received`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadMessage {
    /// The subagent's log.
    pub thread_id: ThreadId,
    /// What was said.
    pub content: Vec<Block>,
}

/// Payload of `span.model_started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelStarted {
    /// Counts the model calls of the turn, from 1.
    pub call: u32,
    /// User events that the model sees for the first time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes_up: Vec<u64>,
}

/// Payload of `span.model_finished`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFinished {
    /// The call that ended.
    pub call: u32,
    /// The model that answered, as `provider/model`.
    pub model: String,
    /// What it cost.
    pub usage: Usage,
    /// Why the answer is shorter than the model wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Why a model call or a turn failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// A stable code for programs.
    pub code: String,
    /// What happened and what to do, for people.
    pub message: String,
}

/// Payload of `tool.started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolStarted {
    /// The call that starts.
    pub tool_use_id: ToolUseId,
}

/// Who named a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TitleSource {
    /// A person or application; never overwritten by us.
    User,
    /// We did.
    Generated,
}

/// Payload of `session.titled`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Titled {
    /// The title; none if it was removed.
    pub title: Option<String>,
    /// Who chose it.
    pub source: TitleSource,
}

/// Payload of `session.compacted`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// The last event that the summary stands for.
    pub through: u64,
    /// The summary.
    pub summary: String,
}
