//! A conversation as callbacks know it: a list of messages with `role` and `content`.

use petasos_core::event::{Block, joined_text};
use petasos_core::model::{AssistantPart, Message, ToolOutcome};
use serde_json::{Map, Value, json};

/// The messages of a conversation. Reasoning is left out: it belongs to its provider.
pub(crate) fn of(messages: &[Message]) -> Value {
    messages.iter().flat_map(entries).collect()
}

fn entries(message: &Message) -> Vec<Value> {
    match message {
        Message::User(content) => vec![json!({ "role": "user", "content": user_content(content) })],
        Message::Assistant(parts) => vec![assistant(parts)],
        Message::ToolResults(results) => results.iter().map(result).collect(),
    }
}

/// Plain text, unless there are pictures.
fn user_content(content: &[Block]) -> Value {
    if content.iter().all(|block| matches!(block, Block::Text { .. })) {
        return joined_text(content).into();
    }
    let part = |block: &Block| match block {
        Block::Text { text } => json!({ "type": "text", "text": text }),
        Block::Image { url } => json!({ "type": "image_url", "image_url": { "url": url } }),
    };
    content.iter().map(part).collect()
}

fn assistant(parts: &[AssistantPart]) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Thinking { .. } => {}
            AssistantPart::Text(said) => text.push_str(said),
            AssistantPart::ToolCall { id, name, input, .. } => calls.push(call(id, name, input)),
        }
    }
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn call(id: &str, name: &str, input: &Map<String, Value>) -> Value {
    let arguments = Value::Object(input.clone()).to_string();
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

fn result(outcome: &ToolOutcome) -> Value {
    json!({ "role": "tool", "tool_call_id": outcome.id, "name": outcome.name, "content": outcome.text })
}
