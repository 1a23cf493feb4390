//! The conversation as the list of items that OpenAI's responses take.

use petasos_core::event::{Block, joined_text};
use petasos_core::model::{AssistantPart, Message, Opaque, ToolOutcome};
use serde_json::{Value, json};

use super::FORMAT;
use crate::wire::call_ids::CallIds;
use crate::wire::{Target, outcome_text};

/// The items. Reasoning goes back unless the vendor has refused what it is in this conversation.
pub(super) fn input(messages: &[Message], target: &Target<'_>) -> Vec<Value> {
    let mut ids = CallIds::of(messages, FORMAT);
    let mut items = Vec::new();
    for message in messages {
        match message {
            Message::User(content) => items.push(json!({
                "type": "message",
                "role": "user",
                "content": user_content(content),
            })),
            Message::Assistant(parts) => assistant(parts, &mut ids, &mut items),
            Message::ToolResults(outcomes) => items.extend(outcomes.iter().map(|outcome| {
                json!({ "type": "function_call_output", "call_id": ids.next_result(&outcome.id), "output": output(outcome) })
            })),
        }
    }
    if target.refuses("encrypted_content") {
        items.retain(|item| item["type"] != "reasoning");
    }
    items
}

fn user_content(content: &[Block]) -> Vec<Value> {
    if content.iter().all(|block| matches!(block, Block::Text { .. })) {
        return vec![input_text(&joined_text(content))];
    }
    let part = |block: &Block| match block {
        Block::Text { text } => input_text(text),
        Block::Image { url } => input_image(url),
    };
    content.iter().map(part).collect()
}

fn output(outcome: &ToolOutcome) -> Value {
    let text = outcome_text(outcome);
    if outcome.images.is_empty() {
        return json!(text);
    }
    let images = outcome.images.iter().map(|url| input_image(url));
    std::iter::once(input_text(&text)).chain(images).collect()
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn input_image(url: &str) -> Value {
    json!({ "type": "input_image", "image_url": url })
}

fn assistant(parts: &[AssistantPart], ids: &mut CallIds<'_>, items: &mut Vec<Value>) {
    for part in parts {
        match part {
            AssistantPart::Thinking { opaque: Some(Opaque { format, data, .. }), .. }
                if format == FORMAT && data.is_object() =>
            {
                items.push(data.clone());
            }
            AssistantPart::Thinking { .. } => {}
            AssistantPart::Text(text) if text.is_empty() => {}
            AssistantPart::Text(text) => items.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            })),
            AssistantPart::ToolCall { id, name, input, .. } => items.push(json!({
                "type": "function_call",
                "call_id": ids.next_call(id),
                "name": name,
                "arguments": Value::Object(input.clone()).to_string(),
            })),
        }
    }
    // Reasoning is only accepted in front of what it led to.
    while items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
}
