//! About how much memory a conversation takes: its texts and pictures, and what holds them. What says nothing takes some
//! too, and there may be a lot of it.

use serde_json::{Map, Value};

use crate::event::Block;
use crate::model::{AssistantPart, Message, Opaque, ToolOutcome};

/// Bytes of one message.
pub(crate) fn of_message(message: &Message) -> usize {
    let said: usize = match message {
        Message::User(content) => of_blocks(content),
        Message::Assistant(parts) => parts.iter().map(of_part).sum(),
        Message::ToolResults(outcomes) => outcomes.iter().map(of_outcome).sum(),
    };
    size_of::<(u64, Message)>() + said
}

/// Bytes of what somebody said.
pub(crate) fn of_blocks(content: &[Block]) -> usize {
    content.iter().map(of_block).sum()
}

/// Bytes of a text.
pub(crate) fn of_text(text: &str) -> usize {
    size_of::<String>() + text.len()
}

fn of_block(block: &Block) -> usize {
    let (Block::Text { text } | Block::Image { url: text }) = block;
    size_of::<Block>() + text.len()
}

fn of_part(part: &AssistantPart) -> usize {
    let said = match part {
        AssistantPart::Thinking { text, opaque } => text.len() + of_opaque(opaque.as_ref()),
        AssistantPart::Text(text) => text.len(),
        AssistantPart::ToolCall { id, name, input, opaque } => {
            id.len() + name.len() + of_fields(input) + of_opaque(opaque.as_ref())
        }
    };
    size_of::<AssistantPart>() + said
}

fn of_opaque(opaque: Option<&Opaque>) -> usize {
    opaque.map_or(0, |opaque| of_json(&opaque.data))
}

fn of_outcome(outcome: &ToolOutcome) -> usize {
    let ToolOutcome { id, name, text, images, is_error: _ } = outcome;
    let pictures: usize = images.iter().map(|url| of_text(url)).sum();
    size_of::<ToolOutcome>() + id.len() + name.len() + text.len() + pictures
}

fn of_json(value: &Value) -> usize {
    let held = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(of_json).sum(),
        Value::Object(fields) => of_fields(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + held
}

fn of_fields(fields: &Map<String, Value>) -> usize {
    fields.iter().map(|(name, value)| of_text(name) + of_json(value)).sum()
}
