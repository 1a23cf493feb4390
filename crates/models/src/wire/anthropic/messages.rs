//! The conversation in Anthropic's blocks, and where its cache is told to keep what it has read.

use petasos_core::event::Block;
use petasos_core::model::{AssistantPart, Message, Opaque, ToolOutcome};
use serde_json::{Value, json};

use super::FORMAT;
use crate::wire::call_ids::CallIds;
use crate::wire::{Target, data_uri};

/// From a mark the vendor looks back over 20 blocks, the marked one among them, for what it has kept before. Two fewer,
/// so that what it counts and we do not can never cost the cache.
const LOOK_BACK: usize = 18;

/// The conversation with strictly alternating roles, and at most two cache marks: at its end, and, where the turn since
/// the request before is longer than the vendor looks back, on the way there. Reasoning goes back unless the vendor has
/// refused what it is in this conversation.
pub(super) fn messages(messages: &[Message], target: &Target<'_>) -> Vec<Value> {
    let with_reasoning = !target.refuses("signature");
    let mut ids = CallIds::of(messages, FORMAT);
    let last_answer = messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
    let mut merged: Vec<(&str, Vec<Value>)> = Vec::new();
    let (mut count, mut asked) = (0, 0);
    for (index, message) in messages.iter().enumerate() {
        if last_answer == Some(index) {
            // The request before ended where the last answer begins.
            asked = count;
        }
        let (role, mut blocks) = blocks(message, &mut ids);
        blocks.retain(|block| with_reasoning || !is_reasoning(block));
        count += blocks.len();
        match merged.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, content)) if *last == role => content.extend(blocks),
            _ => merged.push((role, blocks)),
        }
    }
    if !target.refuses("cache_control") {
        let mut all: Vec<&mut Value> = merged.iter_mut().flat_map(|(_, content)| content).collect();
        mark(&mut all, asked);
    }
    merged.into_iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
}

/// Marks the last block, and if the first `asked` blocks, which the vendor has read before, are too far from it, the
/// last one that is near enough to them.
fn mark(blocks: &mut [&mut Value], asked: usize) {
    let cached = json!({ "type": "ephemeral" });
    let Some(end) = blocks.iter().rposition(|block| takes_mark(block)) else { return };
    blocks[end]["cache_control"] = cached.clone();
    if asked == 0 || end < asked + LOOK_BACK {
        return;
    }
    let near = asked - 1..(asked + LOOK_BACK).min(blocks.len());
    if let Some(index) = near.rev().find(|index| takes_mark(blocks[*index])) {
        blocks[index]["cache_control"] = cached;
    }
}

/// Reasoning cannot be marked.
fn takes_mark(block: &Value) -> bool {
    !is_reasoning(block)
}

fn is_reasoning(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

fn blocks(message: &Message, ids: &mut CallIds<'_>) -> (&'static str, Vec<Value>) {
    match message {
        Message::User(content) => ("user", content.iter().filter_map(user_block).collect()),
        Message::ToolResults(outcomes) => {
            ("user", outcomes.iter().map(|outcome| result(outcome, ids)).collect())
        }
        Message::Assistant(parts) => {
            let mut blocks: Vec<Value> = parts.iter().filter_map(|part| assistant_block(part, ids)).collect();
            // A message must not end in reasoning.
            while blocks.last().is_some_and(is_reasoning) {
                blocks.pop();
            }
            ("assistant", blocks)
        }
    }
}

fn result(outcome: &ToolOutcome, ids: &mut CallIds<'_>) -> Value {
    let mut block = json!({ "type": "tool_result", "tool_use_id": ids.next_result(&outcome.id) });
    if !outcome.images.is_empty() {
        let images = outcome.images.iter().map(|url| image(url));
        block["content"] = text(&outcome.text).into_iter().chain(images).collect();
    } else if !outcome.text.trim().is_empty() {
        block["content"] = json!(outcome.text);
    }
    if outcome.is_error {
        block["is_error"] = json!(true);
    }
    block
}

fn user_block(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text: said } => text(said),
        Block::Image { url } => Some(image(url)),
    }
}

/// A picture: here the data of a URI and its type are sent apart.
fn image(url: &str) -> Value {
    let source = match data_uri(url) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": url }),
    };
    json!({ "type": "image", "source": source })
}

/// A text block; blank ones are refused there.
fn text(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn assistant_block(part: &AssistantPart, ids: &mut CallIds<'_>) -> Option<Value> {
    match part {
        AssistantPart::Text(said) => text(said),
        AssistantPart::ToolCall { id, name, input, .. } => {
            Some(json!({ "type": "tool_use", "id": ids.next_call(id), "name": name, "input": input }))
        }
        AssistantPart::Thinking { opaque: Some(Opaque { format, data, .. }), .. }
            if format == FORMAT && is_sealed(data) =>
        {
            Some(data.clone())
        }
        AssistantPart::Thinking { .. } => None,
    }
}

/// Reasoning is only taken back with the vendor's own seal.
fn is_sealed(data: &Value) -> bool {
    ["signature", "data"].iter().any(|seal| data[*seal].as_str().is_some_and(|seal| !seal.is_empty()))
}
