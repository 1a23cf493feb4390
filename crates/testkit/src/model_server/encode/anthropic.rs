//! Anthropic's messages.

use petasos_core::model::{Stop, Usage};
use serde_json::{Value, json};

use super::{Frames, halves, words};
use crate::model_server::reply::Item;

pub(super) fn answer(frames: &mut Frames, items: &[Item], usage: Usage, stop: Stop) {
    // The vendor does not count cached tokens as input.
    let uncached = usage.input_tokens.saturating_sub(usage.cached_input_tokens);
    let first = json!({
        "input_tokens": uncached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": 1,
    });
    let message = json!({
        "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": first,
    });
    frames.typed(&json!({ "type": "message_start", "message": message }));
    frames.typed(&json!({ "type": "ping" }));
    let mut index = 0;
    for item in items {
        index += blocks(frames, index, item);
    }
    let reason = match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    };
    frames.typed(&json!({
        "type": "message_delta",
        "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": usage.output_tokens },
    }));
    frames.typed(&json!({ "type": "message_stop" }));
}

/// Writes an item and says how many blocks it took.
fn blocks(frames: &mut Frames, index: usize, item: &Item) -> usize {
    match item {
        Item::Text(text) => {
            let deltas = words(text).map(|word| json!({ "type": "text_delta", "text": word }));
            block(frames, index, &json!({ "type": "text", "text": "" }), deltas);
            1
        }
        Item::Thinking(text) => {
            let start = json!({ "type": "thinking", "thinking": "", "signature": "" });
            let signature = json!({ "type": "signature_delta", "signature": format!("signature-{index}") });
            let deltas = words(text).map(|word| json!({ "type": "thinking_delta", "thinking": word }));
            block(frames, index, &start, deltas.chain([signature]));
            1
        }
        Item::Calls(batch) => {
            for (index, (name, arguments)) in (index..).zip(batch) {
                let id = format!("toolu_{index}");
                let start = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
                let deltas = halves(arguments);
                let deltas =
                    deltas.iter().map(|half| json!({ "type": "input_json_delta", "partial_json": half }));
                block(frames, index, &start, deltas);
            }
            batch.len()
        }
        Item::Gate(gate) => {
            frames.gate(gate);
            0
        }
    }
}

fn block(frames: &mut Frames, index: usize, start: &Value, deltas: impl Iterator<Item = Value>) {
    frames.typed(&json!({ "type": "content_block_start", "index": index, "content_block": start }));
    for delta in deltas {
        frames.typed(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }
    frames.typed(&json!({ "type": "content_block_stop", "index": index }));
}
