//! Event payloads as Herm clients see them.

use petasos_core::event::{self, Block, CutShort, Payload as Stored, Scope, ToolUse, Verdict};
use serde::Serialize;
use serde_json::{Map, Value};

/// The most characters of one text block.
pub(super) const MAX_BLOCK_CHARS: usize = 20_000;

/// A payload on the wire.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Payload<'a> {
    Content {
        content: Vec<TextBlock<'a>>,
    },
    Said {
        content: Vec<TextBlock<'a>>,
        delta: bool,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        reset: bool,
    },
    Note {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    Confirmation {
        tool_use_id: &'a str,
        result: Verdict,
        scope: Scope,
    },
    CustomToolResult {
        tool_use_id: &'a str,
        content: Vec<TextBlock<'a>>,
        is_error: bool,
    },
    ClarifyResult {
        request_id: &'a str,
        answer: &'a str,
    },
    Answered {
        request_id: &'a str,
    },
    Running {},
    Idle {
        stop_reason: StopReason<'a>,
    },
    Title {
        title: &'a str,
    },
    ToolUse {
        id: &'a str,
        tool: &'a str,
        input: &'a Map<String, Value>,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        preview: Option<&'a str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        requires_action: bool,
    },
    ToolResult {
        tool_use_id: &'a str,
        tool: &'a str,
        status: &'static str,
        content: Vec<TextBlock<'a>>,
        is_error: bool,
    },
    CustomToolUse {
        id: &'a str,
        tool: &'a str,
        input: &'a Map<String, Value>,
    },
    ClarifyRequest {
        request_id: &'a str,
        question: &'a str,
        choices: Option<&'a [String]>,
    },
    SudoRequest {
        request_id: &'a str,
        command: &'a str,
    },
    SecretRequest {
        request_id: &'a str,
        name: &'a str,
        prompt: &'a str,
    },
    Thread {
        thread_id: &'a str,
        content: Vec<TextBlock<'a>>,
    },
}

/// A piece of text.
#[derive(Serialize)]
pub(super) struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

/// Why a session is idle.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StopReason<'a> {
    EndTurn {
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<CutShort>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
    },
    Error {
        message: &'a str,
        code: &'a str,
    },
    RequiresAction {
        event_ids: &'a [String],
    },
}

impl<'a> From<&'a event::StopReason> for StopReason<'a> {
    fn from(reason: &'a event::StopReason) -> Self {
        match reason {
            event::StopReason::EndTurn { reason, interrupted } => {
                StopReason::EndTurn { reason: *reason, interrupted: *interrupted }
            }
            event::StopReason::Error { code, message } => StopReason::Error { message, code },
            event::StopReason::RequiresAction { event_ids } => StopReason::RequiresAction { event_ids },
        }
    }
}

/// A stored payload as clients see it; none for internal ones.
pub(super) fn shown(payload: &Stored) -> Option<Payload<'_>> {
    Some(match payload {
        Stored::UserMessage(message) => Payload::Content { content: blocks(&message.content) },
        Stored::UserSteer(steer) => Payload::Note { message: Some(&steer.message) },
        Stored::UserInterrupt(interrupt) => Payload::Note { message: interrupt.message.as_deref() },
        Stored::UserToolConfirmation(confirmation) => Payload::Confirmation {
            tool_use_id: confirmation.tool_use_id.as_str(),
            result: confirmation.result,
            scope: confirmation.scope,
        },
        Stored::UserCustomToolResult(result) => Payload::CustomToolResult {
            tool_use_id: result.tool_use_id.as_str(),
            content: blocks(&result.content),
            is_error: result.is_error,
        },
        Stored::UserClarifyResult(result) => {
            Payload::ClarifyResult { request_id: result.request_id.as_str(), answer: &result.answer }
        }
        Stored::UserSudoResult(answered) | Stored::UserSecretResult(answered) => {
            Payload::Answered { request_id: answered.request_id.as_str() }
        }
        Stored::StatusRunning {} => Payload::Running {},
        Stored::StatusIdle(idle) => Payload::Idle { stop_reason: StopReason::from(&idle.stop_reason) },
        Stored::AgentMessage(message) => said(&message.text),
        Stored::AgentThinking(thinking) => said(&thinking.text),
        Stored::ToolUse(call) | Stored::McpToolUse(call) => tool_use(call),
        Stored::ToolResult(result) | Stored::McpToolResult(result) => Payload::ToolResult {
            tool_use_id: result.tool_use_id.as_str(),
            tool: &result.tool,
            status: if result.is_error { "failed" } else { "completed" },
            content: blocks(&result.content),
            is_error: result.is_error,
        },
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
        Stored::ThreadMessageSent(message) | Stored::ThreadMessageReceived(message) => {
            Payload::Thread { thread_id: message.thread_id.as_str(), content: blocks(&message.content) }
        }
        Stored::ModelStarted(_)
        | Stored::ModelFinished(_)
        | Stored::ToolStarted(_)
        | Stored::Titled(_)
        | Stored::MetadataChanged { .. }
        | Stored::Archived {}
        | Stored::Compacted(_) => return None,
    })
}

fn said(text: &str) -> Payload<'_> {
    Payload::Said { content: text_blocks(text), delta: false, reset: false }
}

fn tool_use(call: &ToolUse) -> Payload<'_> {
    Payload::ToolUse {
        id: call.id.as_str(),
        tool: &call.tool,
        input: &call.input,
        status: "running",
        preview: call.preview.as_deref(),
        requires_action: call.requires_action,
    }
}

fn blocks(content: &[Block]) -> Vec<TextBlock<'_>> {
    content.iter().flat_map(|block| text_blocks(block.as_text())).collect()
}

/// Cuts a text into blocks that clients accept. An empty text is one empty block.
pub(super) fn text_blocks(mut text: &str) -> Vec<TextBlock<'_>> {
    let mut blocks = Vec::with_capacity(1);
    // A text cannot have more characters than bytes, so most need no counting.
    while text.len() > MAX_BLOCK_CHARS
        && let Some((at, _)) = text.char_indices().nth(MAX_BLOCK_CHARS)
    {
        let (block, rest) = text.split_at(at);
        blocks.push(TextBlock { r#type: "text", text: block });
        text = rest;
    }
    blocks.push(TextBlock { r#type: "text", text });
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
        assert_eq!(blocks.iter().map(|block| block.text).collect::<String>(), text);
        assert_eq!(text_blocks("").len(), 1);
        assert_eq!(text_blocks(&"x".repeat(MAX_BLOCK_CHARS)).len(), 1);
    }
}
