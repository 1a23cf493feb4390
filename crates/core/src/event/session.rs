//! How turns go, and what is noted about a session beside them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::ToolUseId;
use crate::model::{Opaque, Usage};
use crate::recovery::WorkKind;
use crate::state::ActionKind;

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
        /// When they are no longer waited for; none if that never happens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
}

impl Failure {
    /// The code of a model that was given more than it can read.
    pub const CONTEXT_TOO_LONG: &str = "model_context_too_long";
    /// The code of a turn that repeats the same failing call.
    pub const TOOL_LOOP: &str = "tool_loop";

    /// Whether the model was given more than it can read.
    pub fn is_context_too_long(&self) -> bool {
        self.code == Failure::CONTEXT_TOO_LONG
    }
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

/// Payload of `session.action_expired`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionExpired {
    /// What an answer would have referred to.
    pub id: String,
    /// What kind of answer it was.
    pub action: ActionKind,
}

impl ActionExpired {
    /// What the model is told in place of an answer; none if the call has a result of its own.
    pub fn told(&self) -> Option<&'static str> {
        match self.action {
            ActionKind::ToolConfirmation | ActionKind::Sudo => None,
            ActionKind::CustomTool => Some("The application did not answer in time; the outcome is unknown."),
            ActionKind::Clarify => Some("The user did not answer in time. Go on without an answer, or stop."),
            ActionKind::Secret => Some("The user did not supply it in time."),
        }
    }
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

/// What a model was called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To go on with the turn.
    #[default]
    Turn,
    /// To summarise a context that grew too long.
    Summary,
}

impl Purpose {
    fn is_turn(&self) -> bool {
        *self == Purpose::Turn
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Payload of `span.model_finished`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelFinished {
    /// What it was called for.
    #[serde(default, skip_serializing_if = "Purpose::is_turn")]
    pub purpose: Purpose,
    /// The call that ended.
    pub call: u32,
    /// The model that answered, as `provider/model`.
    pub model: String,
    /// What it cost.
    pub usage: Usage,
    /// How many tools it called.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tool_calls: u32,
    /// Why the answer is shorter than the model wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<CutShort>,
    /// Whether a call of the answer was cut with it and did not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_call: bool,
    /// What the provider wants back with each call of the answer, in their order; empty if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub call_data: Vec<Option<Opaque>>,
    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

/// Payload of `session.model_settings_left_out`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSettingsLeftOut {
    /// The model, as `provider/model`.
    pub model: String,
    /// The settings that its provider's format has no field for.
    pub settings: Vec<String>,
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

/// Another text in place of a result that came from outside: of a tool of the application, an answer, a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResultTransformed {
    /// The call, by the id that its result names.
    pub tool_use_id: String,
    /// The text that the model reads.
    pub text: String,
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

/// Payload of `session.compaction_started`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionStarted {
    /// The tokens that the context has, as far as is known.
    pub tokens: u64,
}

/// Payload of `session.compacted`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Compacted {
    /// The last event that the summary stands for; 0 if there is none.
    pub through: u64,
    /// The summary.
    pub summary: String,
    /// The last event whose tool output is shortened; 0 if none is.
    #[serde(default)]
    pub pruned: u64,
    /// The tokens that the context has now, as far as is known.
    #[serde(default)]
    pub tokens: u64,
}

/// Payload of `session.prompt_prepared`. What is remembered about a user changes while sessions go on; the prompt of
/// one that has started does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPrepared {
    /// What follows the agent's instructions: notes of earlier sessions, and the index of skills.
    pub text: String,
}

/// Payload of `session.events_deleted`: whatever the log has from there until here was never said, for whoever is shown
/// it. It says so at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventsDeleted {
    /// The first entry that is deleted.
    pub from: u64,
}

/// Payload of `session.event_metadata_changed`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventMetadataChanged {
    /// The entry.
    pub sequence: u64,
    /// Metadata to merge; `null` removes a key.
    pub metadata: Map<String, Value>,
}

/// Payload of `session.work_set_aside`: work of the session was under way each time that the server died, several times
/// in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSetAside {
    /// What kind of work it is.
    pub kind: WorkKind,
    /// The work itself, such as a delivery; none if it is the session's own turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What happened and what happens next, for people.
    pub message: String,
}

/// Payload of `session.system_message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessage {
    /// What the model is told.
    pub text: String,
}
