//! What people and applications send.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Block;
use crate::ids::{RequestId, ToolUseId};

/// Payload of `user.message`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserMessage {
    /// What the user said.
    pub content: Vec<Block>,
    /// Where in the conversation it stands.
    #[serde(default, skip_serializing_if = "MessagePlace::is_usual")]
    pub place: MessagePlace,
    /// The application's own tags, which the model does not see.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

impl UserMessage {
    /// A message that opens a turn.
    pub fn new(content: Vec<Block>) -> Self {
        UserMessage { content, place: MessagePlace::OpensTurn, metadata: Map::new() }
    }
}

/// Where in the conversation a user's message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePlace {
    /// It opens a turn.
    #[default]
    OpensTurn,
    /// It came together with answers that a turn waited for, and is read after the results of that step.
    JoinsTurn,
    /// It is part of a conversation that came with the session.
    Seeded,
    /// It came while a person answers, and opens no turn.
    Kept,
}

impl MessagePlace {
    fn is_usual(&self) -> bool {
        *self == MessagePlace::OpensTurn
    }
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
    /// The pattern of commands to allow in place of the whole tool or danger; one of those that the call offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// What is allowed, as [`crate::grant::Grant`] reads it. Filled in when the answer is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What else is allowed, if the call has several dangers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

impl ToolConfirmation {
    /// All that is allowed.
    pub fn grants(&self) -> impl Iterator<Item = &str> {
        self.tool.iter().chain(&self.also).map(String::as_str)
    }
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

impl ClarifyResult {
    /// What the model is told.
    pub fn told(&self) -> &str {
        match self.answer.as_str() {
            "" => "The user skipped the question. Use your best judgement.",
            answer => answer,
        }
    }
}

/// Payload of `user.sudo_result` and `user.secret_result`: that an answer came, never the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestAnswered {
    /// The request that was answered.
    pub request_id: RequestId,
}
