//! Event payloads as Herm clients see them.

use std::borrow::Cow;

use petasos_core::event::{self, Block, CutShort, Payload as Stored, Scope, Verdict};
use petasos_core::recovery::WorkKind;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::surfaces::pending_actions::ActionType;

/// The most characters of one text block.
pub(super) const MAX_BLOCK_CHARS: usize = 20_000;

/// What happened, by type.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type")]
#[schemars(rename = "EventPayload")]
pub(super) enum Payload<'a> {
    #[serde(rename = "user.message")]
    UserMessage { content: Vec<TextBlock<'a>> },
    #[serde(rename = "user.steer")]
    UserSteer { message: &'a str },
    #[serde(rename = "user.interrupt")]
    UserInterrupt {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    #[serde(rename = "user.tool_confirmation")]
    UserToolConfirmation {
        tool_use_id: &'a str,
        result: Verdict,
        scope: Scope,
        /// The pattern of commands that was allowed in place of the whole tool.
        #[serde(skip_serializing_if = "Option::is_none")]
        pattern: Option<&'a str>,
    },
    #[serde(rename = "user.custom_tool_result")]
    UserCustomToolResult { tool_use_id: &'a str, content: Vec<TextBlock<'a>>, is_error: bool },
    #[serde(rename = "user.clarify_result")]
    UserClarifyResult { request_id: &'a str, answer: &'a str },
    #[serde(rename = "user.sudo_result")]
    UserSudoResult { request_id: &'a str },
    #[serde(rename = "user.secret_result")]
    UserSecretResult { request_id: &'a str },
    #[serde(rename = "session.status_running")]
    StatusRunning {},
    #[serde(rename = "session.status_idle")]
    StatusIdle { stop_reason: StopReason },
    #[serde(rename = "session.action_expired")]
    ActionExpired { id: &'a str, action: ActionType },
    /// Work of the session is set aside because the server died over and over while it was under way.
    #[serde(rename = "session.work_set_aside")]
    WorkSetAside {
        kind: WorkKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        message: &'a str,
    },
    #[serde(rename = "session.title_updated")]
    TitleUpdated { title: &'a str },
    #[serde(rename = "agent.message")]
    AgentMessage(Said<'a>),
    #[serde(rename = "agent.thinking")]
    AgentThinking(Said<'a>),
    #[serde(rename = "agent.tool_use")]
    ToolUse(ToolUse<'a>),
    #[serde(rename = "agent.tool_result")]
    ToolResult(ToolResult<'a>),
    #[serde(rename = "agent.mcp_tool_use")]
    McpToolUse(ToolUse<'a>),
    #[serde(rename = "agent.mcp_tool_result")]
    McpToolResult(ToolResult<'a>),
    #[serde(rename = "agent.custom_tool_use")]
    CustomToolUse { id: &'a str, tool: &'a str, input: &'a Map<String, Value> },
    #[serde(rename = "agent.clarify_request")]
    ClarifyRequest { request_id: &'a str, question: &'a str, choices: Option<&'a [String]> },
    #[serde(rename = "agent.sudo_request")]
    SudoRequest { request_id: &'a str, command: &'a str },
    #[serde(rename = "agent.secret_request")]
    SecretRequest { request_id: &'a str, name: &'a str, prompt: &'a str },
    #[serde(rename = "agent.thread_message_sent")]
    ThreadMessageSent { thread_id: &'a str, content: Vec<TextBlock<'a>> },
    #[serde(rename = "agent.thread_message_received")]
    ThreadMessageReceived { thread_id: &'a str, content: Vec<TextBlock<'a>> },
}

/// Something that the agent said or thought, whole or in part.
#[derive(Serialize, JsonSchema)]
pub(super) struct Said<'a> {
    content: Vec<TextBlock<'a>>,
    /// Whether this is a piece of a message under way. Pieces are never stored.
    delta: bool,
    /// Whether what this message showed so far has to be dropped first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    reset: bool,
}

impl<'a> Said<'a> {
    /// A whole message.
    fn whole(text: &'a str) -> Self {
        Said { content: text_blocks(text), delta: false, reset: false }
    }

    /// A piece of one.
    pub(super) fn piece(text: &'a str, reset: bool) -> Self {
        Said { content: text_blocks(text), delta: true, reset }
    }
}

/// A call of a built-in or MCP tool.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolUse<'a> {
    id: &'a str,
    tool: &'a str,
    input: &'a Map<String, Value>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    requires_action: bool,
    /// Why a person is asked, when it is not the policy that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    danger: Option<Danger<'a>>,
}

/// What is dangerous about a call.
#[derive(Serialize, JsonSchema)]
pub(super) struct Danger<'a> {
    pattern_key: &'a str,
    /// All of them, the first one first.
    pattern_keys: Vec<&'a str>,
    description: &'a str,
}

impl<'a> From<&'a event::ToolUse> for ToolUse<'a> {
    fn from(call: &'a event::ToolUse) -> Self {
        ToolUse {
            id: call.id.as_str(),
            tool: &call.tool,
            input: &call.input,
            status: "running",
            preview: call.preview.as_deref(),
            requires_action: call.requires_action,
            danger: call.danger.as_ref().map(|danger| Danger {
                pattern_key: &danger.pattern_key,
                pattern_keys: danger.pattern_keys().collect(),
                description: &danger.description,
            }),
        }
    }
}

/// What came of a call.
#[derive(Serialize, JsonSchema)]
pub(super) struct ToolResult<'a> {
    tool_use_id: &'a str,
    tool: &'a str,
    status: &'static str,
    content: Vec<TextBlock<'a>>,
    is_error: bool,
}

impl<'a> From<&'a event::ToolResult> for ToolResult<'a> {
    fn from(result: &'a event::ToolResult) -> Self {
        ToolResult {
            tool_use_id: result.tool_use_id.as_str(),
            tool: &result.tool,
            status: if result.is_error { "failed" } else { "completed" },
            content: blocks(&result.content),
            is_error: result.is_error,
        }
    }
}

/// A piece of text, of at most 20,000 characters.
#[derive(Serialize, JsonSchema)]
pub(super) struct TextBlock<'a> {
    r#type: &'static str,
    text: Cow<'a, str>,
}

impl<'a> TextBlock<'a> {
    fn new(text: impl Into<Cow<'a, str>>) -> Self {
        TextBlock { r#type: "text", text: text.into() }
    }
}

/// Why a session is idle.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StopReason {
    /// The turn is over.
    EndTurn {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CutShort>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    /// The turn failed.
    Error { message: String, code: String },
    /// The turn waits for these actions.
    RequiresAction { event_ids: Vec<String> },
}

impl From<event::StopReason> for StopReason {
    fn from(reason: event::StopReason) -> Self {
        match reason {
            event::StopReason::EndTurn { reason, interrupted } => StopReason::EndTurn { reason, interrupted },
            event::StopReason::Error { code, message } => StopReason::Error { message, code },
            event::StopReason::RequiresAction { event_ids, .. } => StopReason::RequiresAction { event_ids },
        }
    }
}

/// A stored payload as clients see it; none for internal ones.
pub(super) fn shown(payload: &Stored) -> Option<Payload<'_>> {
    Some(match payload {
        Stored::UserMessage(message) => Payload::UserMessage { content: blocks(&message.content) },
        Stored::UserSteer(steer) => Payload::UserSteer { message: &steer.message },
        Stored::UserInterrupt(interrupt) => Payload::UserInterrupt { message: interrupt.message.as_deref() },
        Stored::UserToolConfirmation(confirmation) => Payload::UserToolConfirmation {
            tool_use_id: confirmation.tool_use_id.as_str(),
            result: confirmation.result,
            scope: confirmation.scope,
            pattern: confirmation.pattern.as_deref(),
        },
        Stored::UserCustomToolResult(result) => Payload::UserCustomToolResult {
            tool_use_id: result.tool_use_id.as_str(),
            content: blocks(&result.content),
            is_error: result.is_error,
        },
        Stored::UserClarifyResult(result) => {
            Payload::UserClarifyResult { request_id: result.request_id.as_str(), answer: &result.answer }
        }
        Stored::UserSudoResult(answered) => {
            Payload::UserSudoResult { request_id: answered.request_id.as_str() }
        }
        Stored::UserSecretResult(answered) => {
            Payload::UserSecretResult { request_id: answered.request_id.as_str() }
        }
        Stored::StatusRunning {} => Payload::StatusRunning {},
        Stored::StatusIdle(idle) => Payload::StatusIdle { stop_reason: idle.stop_reason.clone().into() },
        Stored::ActionExpired(expired) => {
            Payload::ActionExpired { id: &expired.id, action: expired.action.into() }
        }
        Stored::WorkSetAside(work) => {
            Payload::WorkSetAside { kind: work.kind, id: work.id.as_deref(), message: &work.message }
        }
        Stored::AgentMessage(message) => Payload::AgentMessage(Said::whole(&message.text)),
        Stored::AgentThinking(thinking) => Payload::AgentThinking(Said::whole(&thinking.text)),
        Stored::ToolUse(call) => Payload::ToolUse(call.into()),
        Stored::McpToolUse(call) => Payload::McpToolUse(call.into()),
        Stored::ToolResult(result) => Payload::ToolResult(result.into()),
        Stored::McpToolResult(result) => Payload::McpToolResult(result.into()),
        Stored::CustomToolUse(call) => {
            Payload::CustomToolUse { id: call.id.as_str(), tool: &call.tool, input: &call.input }
        }
        Stored::ClarifyRequest(request) => Payload::ClarifyRequest {
            request_id: request.request_id.as_str(),
            question: &request.question,
            choices: request.choices.as_deref(),
        },
        Stored::SudoRequest(request) => {
            Payload::SudoRequest { request_id: request.request_id.as_str(), command: &request.command }
        }
        Stored::SecretRequest(request) => Payload::SecretRequest {
            request_id: request.request_id.as_str(),
            name: &request.name,
            prompt: &request.prompt,
        },
        Stored::ThreadMessageSent(message) => Payload::ThreadMessageSent {
            thread_id: message.thread_id.as_str(),
            content: blocks(&message.content),
        },
        Stored::ThreadMessageReceived(message) => Payload::ThreadMessageReceived {
            thread_id: message.thread_id.as_str(),
            content: blocks(&message.content),
        },
        Stored::ModelStarted(_)
        | Stored::ModelFinished(_)
        | Stored::ToolStarted(_)
        | Stored::ToolResultTransformed(_)
        | Stored::Titled(_)
        | Stored::MetadataChanged { .. }
        | Stored::Archived {}
        | Stored::CompactionStarted(_)
        | Stored::Compacted(_)
        | Stored::PromptPrepared(_)
        | Stored::SettingsChanged(_)
        | Stored::ModelSettingsLeftOut(_)
        | Stored::SystemMessage(_)
        | Stored::PersonMessage(_)
        | Stored::PersonNote(_)
        | Stored::ApplicationEvent(_)
        | Stored::ConversationChanged(_)
        | Stored::EventsDeleted(_)
        | Stored::EventMetadataChanged(_)
        | Stored::CustomerVariables(_)
        | Stored::MessageSeeded {}
        | Stored::Typing {}
        | Stored::RunOpened(_)
        | Stored::RunReminded(_)
        | Stored::RunSettled(_) => return None,
    })
}

fn blocks(content: &[Block]) -> Vec<TextBlock<'_>> {
    content
        .iter()
        .flat_map(|block| match block {
            Block::Text { text } => text_blocks(text),
            Block::Image { url } => vec![TextBlock::new(image_note(url))],
        })
        .collect()
}

/// What is shown of a picture, since this protocol has text only.
fn image_note(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|data| data.split_once(',')) {
        Some((kind, data)) => {
            format!("[image: {}, {} bytes]", kind.trim_end_matches(";base64"), data.len() / 4 * 3)
        }
        None => format!("[image: {url}]"),
    }
}

/// Cuts a text into blocks that clients accept. An empty text is one empty block.
fn text_blocks(mut text: &str) -> Vec<TextBlock<'_>> {
    let mut blocks = Vec::with_capacity(1);
    // A text cannot have more characters than bytes, so most need no counting.
    while text.len() > MAX_BLOCK_CHARS
        && let Some((at, _)) = text.char_indices().nth(MAX_BLOCK_CHARS)
    {
        let (block, rest) = text.split_at(at);
        blocks.push(TextBlock::new(block));
        text = rest;
    }
    blocks.push(TextBlock::new(text));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_at_characters() {
        let text = "ä".repeat(2 * MAX_BLOCK_CHARS + 5);
        let blocks = text_blocks(&text);
        let lengths: Vec<usize> = blocks.iter().map(|block| block.text.chars().count()).collect();
        assert_eq!(lengths, [MAX_BLOCK_CHARS, MAX_BLOCK_CHARS, 5]);
        assert_eq!(blocks.iter().map(|block| block.text.as_ref()).collect::<String>(), text);
        assert_eq!(text_blocks("").len(), 1);
        assert_eq!(text_blocks(&"x".repeat(MAX_BLOCK_CHARS)).len(), 1);
    }
}
