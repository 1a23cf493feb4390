//! What the agent says, thinks, calls and asks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Block;
use crate::budget::Budget;
use crate::ids::{RequestId, ThreadId, ToolUseId};
use crate::model::{Opaque, Usage};

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
    /// Why a person is asked, when it is not the policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
    /// Patterns of commands that a person may allow in place of the whole tool, the narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The budget that is used up, if no model made this call and it asks whether to go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Which tool of which MCP server this is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcp: Option<McpTool>,
}

/// A tool of an MCP server, by the names that the agent's definition and the server have for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpTool {
    /// The server.
    pub server: String,
    /// Its tool.
    pub tool: String,
}

/// What is dangerous about a call, so that a person is asked whatever the policy says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Danger {
    /// Names the danger for programs, and never changes.
    pub pattern_key: String,
    /// Names it for people, and every other one.
    pub description: String,
    /// The keys of what else is dangerous about the call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// A text for each of several dangers, in the order of their keys. A single danger has its text in `description`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<String>,
}

impl Danger {
    /// All that is dangerous about one call, by key and description. None if nothing is.
    pub fn of(dangers: impl IntoIterator<Item = (String, String)>) -> Option<Self> {
        let (mut keys, texts): (Vec<_>, Vec<_>) = dangers.into_iter().unzip();
        let also = keys.split_off(keys.len().min(1));
        let pattern_key = keys.pop()?;
        let description = texts.join("; ");
        let texts = if also.is_empty() { Vec::new() } else { texts };
        Some(Danger { pattern_key, description, also, texts })
    }

    /// Each danger with its text. Logs of earlier versions have one text for all of them.
    pub fn reasons(&self) -> impl Iterator<Item = (&str, &str)> {
        let texts = self.texts.iter().chain(std::iter::repeat(&self.description)).map(String::as_str);
        self.pattern_keys().zip(texts)
    }

    /// The keys of all dangers, the first one first.
    pub fn pattern_keys(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.pattern_key).chain(&self.also).map(String::as_str)
    }

    /// What is remembered when a person allows this for longer than one call: the dangers, not the whole tool.
    pub fn grants(&self) -> impl Iterator<Item = String> {
        self.pattern_keys().map(|key| format!("danger:{key}"))
    }
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
        let mut input = object([("question", self.question.as_str().into())]);
        input.extend(self.choices.clone().map(|choices| ("choices".to_owned(), choices.into())));
        input
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
    /// The call that delegated the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
    /// What the subagent's model calls cost, when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<ThreadUsage>,
}

/// What a subagent's model calls cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadUsage {
    /// Its tokens.
    pub usage: Usage,
    /// Its model calls.
    pub model_calls: u64,
}
