//! The entries of a session's log.
//!
//! These are the persisted shapes: they change only by addition, and no wire protocol may be served from
//! them directly. Type names follow the Herm events reference where it has one; the rest are internal and
//! start with `span.`, `tool.`, `run.` or are `session.` entries that no protocol shows. What others than the user say
//! starts with `person.` or `application.`.

mod agent;
mod person;
mod run;
mod session;
mod user;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::{ConversationChange, CustomerVariables};
use crate::ids::{EventId, SessionId};
use crate::settings::SessionSettings;

pub use agent::*;
pub use person::*;
pub use run::*;
pub use session::*;
pub use user::*;

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

/// A piece of content. Further kinds are added as variants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text itself.
        text: String,
    },
    /// A picture.
    Image {
        /// An `https://` link, or a `data:` URI that holds the picture itself.
        url: String,
    },
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into() }
    }

    /// The text of this block; a picture has none.
    pub fn as_text(&self) -> &str {
        match self {
            Block::Text { text } => text,
            Block::Image { .. } => "",
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
    /// A user's message: opens a turn, unless it says otherwise.
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

    /// A person who is not the user said something to the user.
    #[serde(rename = "person.message")]
    PersonMessage(PersonMessage),
    /// A person said something to the agent that the user does not see.
    #[serde(rename = "person.note")]
    PersonNote(PersonNote),
    /// An application added something for its own readers.
    #[serde(rename = "application.event")]
    ApplicationEvent(ApplicationEvent),

    /// A turn started or went on after a pause.
    #[serde(rename = "session.status_running")]
    StatusRunning {},
    /// A turn ended or paused.
    #[serde(rename = "session.status_idle")]
    StatusIdle(StatusIdle),
    /// Nobody answered in time, and nobody is waited for any more.
    #[serde(rename = "session.action_expired")]
    ActionExpired(ActionExpired),

    /// Work of the session is set aside because the server died over and over while it was under way.
    #[serde(rename = "session.work_set_aside")]
    WorkSetAside(WorkSetAside),

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
    /// Internal: hooks put another text in place of a result that came from outside. The model reads this one.
    #[serde(rename = "tool.result_transformed")]
    ToolResultTransformed(ToolResultTransformed),
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
    /// Internal: the context is about to be compacted.
    #[serde(rename = "session.compaction_started")]
    CompactionStarted(CompactionStarted),
    /// Internal: what the model reads is shorter from now on.
    #[serde(rename = "session.compacted")]
    Compacted(Compacted),
    /// Internal: what the system prompt holds besides the agent's instructions, for the whole session.
    #[serde(rename = "session.prompt_prepared")]
    PromptPrepared(PromptPrepared),
    /// Internal: the settings were replaced by these.
    #[serde(rename = "session.settings_changed")]
    SettingsChanged(SessionSettings),
    /// Internal: settings that do not reach a model. Each is named once for a model.
    #[serde(rename = "session.model_settings_left_out")]
    ModelSettingsLeftOut(ModelSettingsLeftOut),
    /// Internal: something about the conversation changed, such as who answers.
    #[serde(rename = "session.conversation_changed")]
    ConversationChanged(ConversationChange),
    /// Internal: a part of the log is not shown any more.
    #[serde(rename = "session.events_deleted")]
    EventsDeleted(EventsDeleted),
    /// Internal: the metadata of an entry changed.
    #[serde(rename = "session.event_metadata_changed")]
    EventMetadataChanged(EventMetadataChanged),
    /// Internal: what is known about the customer when a turn opens. The model reads it before the message.
    #[serde(rename = "session.customer_variables")]
    CustomerVariables(CustomerVariables),
    /// Internal: a system message came with the session. The model reads it after the agent's instructions.
    #[serde(rename = "session.system_message")]
    SystemMessage(SystemMessage),
    /// Internal: what the agent says and calls next is one message of a conversation that came with the session.
    #[serde(rename = "session.message_seeded")]
    MessageSeeded {},
    /// Internal: the text of a reply is on its way. Only sessions that were opened as conversations have it.
    #[serde(rename = "session.typing")]
    Typing {},
    /// Internal: the turn that has just opened is a run of a routine.
    #[serde(rename = "run.opened")]
    RunOpened(RunOpened),
    /// Internal: the model answered without a call, and is told how a run ends.
    #[serde(rename = "run.reminded")]
    RunReminded(RunReminded),
    /// Internal: the run has come to its end, and the turn ends with it.
    #[serde(rename = "run.settled")]
    RunSettled(RunSettled),
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
    "session.action_expired",
    "session.work_set_aside",
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
            Payload::PersonMessage(_) => "person.message",
            Payload::PersonNote(_) => "person.note",
            Payload::ApplicationEvent(_) => "application.event",
            Payload::StatusRunning {} => "session.status_running",
            Payload::StatusIdle(_) => "session.status_idle",
            Payload::ActionExpired(_) => "session.action_expired",
            Payload::WorkSetAside(_) => "session.work_set_aside",
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
            Payload::ToolResultTransformed(_) => "tool.result_transformed",
            Payload::Titled(_) => "session.titled",
            Payload::MetadataChanged { .. } => "session.metadata_changed",
            Payload::Archived {} => "session.archived",
            Payload::CompactionStarted(_) => "session.compaction_started",
            Payload::Compacted(_) => "session.compacted",
            Payload::PromptPrepared(_) => "session.prompt_prepared",
            Payload::SettingsChanged(_) => "session.settings_changed",
            Payload::ModelSettingsLeftOut(_) => "session.model_settings_left_out",
            Payload::ConversationChanged(_) => "session.conversation_changed",
            Payload::EventsDeleted(_) => "session.events_deleted",
            Payload::EventMetadataChanged(_) => "session.event_metadata_changed",
            Payload::CustomerVariables(_) => "session.customer_variables",
            Payload::SystemMessage(_) => "session.system_message",
            Payload::MessageSeeded {} => "session.message_seeded",
            Payload::Typing {} => "session.typing",
            Payload::RunOpened(_) => "run.opened",
            Payload::RunReminded(_) => "run.reminded",
            Payload::RunSettled(_) => "run.settled",
        }
    }

    /// Whether a person or application sent this, so that it waits until the session takes it up.
    pub fn is_from_user(&self) -> bool {
        self.type_name().starts_with("user.")
    }

    /// Whether somebody outside sent this: a user, a person beside the agent, or an application.
    pub fn is_sent(&self) -> bool {
        let others =
            matches!(self, Payload::PersonMessage(_) | Payload::PersonNote(_) | Payload::ApplicationEvent(_));
        others || self.is_from_user()
    }

    /// What an application noted with it.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        match self {
            Payload::UserMessage(message) => Some(&message.metadata),
            Payload::PersonMessage(message) => Some(&message.metadata),
            Payload::PersonNote(note) => Some(&note.metadata),
            Payload::ApplicationEvent(added) => Some(&added.metadata),
            _ => None,
        }
    }

    /// Whether a turn starts with this.
    pub fn opens_turn(&self) -> bool {
        match self {
            Payload::UserMessage(message) => message.place == MessagePlace::OpensTurn,
            Payload::PersonNote(note) => note.opens_turn,
            _ => false,
        }
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
