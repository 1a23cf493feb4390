//! About how much memory a conversation takes: its texts and pictures, without what surrounds them.

use serde_json::Value;

use crate::event::Block;
use crate::model::{AssistantPart, Message, ToolOutcome};

/// Bytes of one message.
pub(crate) fn of_message(message: &Message) -> usize {
    match message {
        Message::User(content) => content.iter().map(of_block).sum(),
        Message::Assistant(parts) => parts.iter().map(of_part).sum(),
        Message::ToolResults(outcomes) => outcomes.iter().map(of_outcome).sum(),
    }
}

fn of_block(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Image { url } => url.len(),
    }
}

fn of_part(part: &AssistantPart) -> usize {
    match part {
        AssistantPart::Thinking { text, opaque } => {
            text.len() + opaque.as_ref().map_or(0, |opaque| of_json(&opaque.data))
        }
        AssistantPart::Text(text) => text.len(),
        AssistantPart::ToolCall { input, .. } => {
            input.iter().map(|(name, value)| name.len() + of_json(value)).sum()
        }
    }
}

fn of_outcome(outcome: &ToolOutcome) -> usize {
    outcome.text.len() + outcome.images.iter().map(String::len).sum::<usize>()
}

fn of_json(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(of_json).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + of_json(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<Value>(),
    }
}
