//! OpenAI's responses.

use petasos_core::model::{Stop, Usage};
use serde_json::{Value, json};

use super::{Frames, halves, words};
use crate::model_server::reply::Item;

pub(super) fn answer(frames: &mut Frames, items: &[Item], usage: Usage, stop: Stop) {
    let response = |status: &str| json!({ "id": "resp_scripted", "object": "response", "status": status });
    frames.typed(&json!({ "type": "response.created", "response": response("in_progress") }));
    frames.typed(&json!({ "type": "response.in_progress", "response": response("in_progress") }));
    let mut index = 0;
    for item in items {
        match item {
            Item::Thinking(text) => reasoning(frames, index, text),
            Item::Text(text) => message(frames, index, text, stop == Stop::Refusal),
            Item::Calls(batch) => {
                tool_calls(frames, index, batch);
                index += batch.len();
                continue;
            }
            Item::Gate(gate) => {
                frames.gate(gate);
                continue;
            }
        }
        index += 1;
    }
    let (kind, status, details) = match stop {
        Stop::MaxTokens => ("response.incomplete", "incomplete", json!({ "reason": "max_output_tokens" })),
        Stop::EndTurn | Stop::ToolUse | Stop::Refusal => ("response.completed", "completed", Value::Null),
    };
    let mut last = response(status);
    last["incomplete_details"] = details;
    last["usage"] = json!({
        "input_tokens": usage.input_tokens,
        "input_tokens_details": { "cached_tokens": usage.cached_input_tokens },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.total(),
    });
    frames.typed(&json!({ "type": kind, "response": last }));
}

fn reasoning(frames: &mut Frames, index: usize, text: &str) {
    let id = format!("rs_{index}");
    let item = json!({ "id": id, "type": "reasoning", "summary": [] });
    frames.typed(&json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
    let at = |kind: &str| json!({ "type": kind, "item_id": id, "output_index": index, "summary_index": 0 });
    frames.typed(&at("response.reasoning_summary_part.added"));
    for word in words(text) {
        let mut event = at("response.reasoning_summary_text.delta");
        event["delta"] = json!(word);
        frames.typed(&event);
    }
    let item = json!({
        "id": id,
        "type": "reasoning",
        "summary": [{ "type": "summary_text", "text": text }],
        "encrypted_content": format!("encrypted-{index}"),
    });
    frames.typed(&json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
}

fn message(frames: &mut Frames, index: usize, text: &str, refused: bool) {
    let id = format!("msg_{index}");
    let item = json!({ "id": id, "type": "message", "role": "assistant", "content": [] });
    frames.typed(&json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
    let kind = if refused { "response.refusal.delta" } else { "response.output_text.delta" };
    for word in words(text) {
        frames.typed(&json!({
            "type": kind, "item_id": id, "output_index": index, "content_index": 0, "delta": word,
        }));
    }
    let part = if refused {
        json!({ "type": "refusal", "refusal": text })
    } else {
        json!({ "type": "output_text", "text": text, "annotations": [] })
    };
    let item = json!({ "id": id, "type": "message", "role": "assistant", "content": [part] });
    frames.typed(&json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
}

/// All calls start, then the halves of their arguments come by turns.
fn tool_calls(frames: &mut Frames, first: usize, batch: &[(String, Value)]) {
    let item = |index: usize, name: &str, arguments: &str| {
        json!({
            "id": format!("fc_{index}"),
            "type": "function_call",
            "call_id": format!("call_{index}"),
            "name": name,
            "arguments": arguments,
        })
    };
    for (index, (name, _)) in (first..).zip(batch) {
        let item = item(index, name, "");
        frames.typed(&json!({ "type": "response.output_item.added", "output_index": index, "item": item }));
    }
    for half in 0..2 {
        for (index, (_, arguments)) in (first..).zip(batch) {
            frames.typed(&json!({
                "type": "response.function_call_arguments.delta",
                "item_id": format!("fc_{index}"),
                "output_index": index,
                "delta": halves(arguments)[half],
            }));
        }
    }
    for (index, (name, arguments)) in (first..).zip(batch) {
        let whole = halves(arguments).concat();
        frames.typed(&json!({
            "type": "response.function_call_arguments.done",
            "item_id": format!("fc_{index}"),
            "output_index": index,
            "arguments": whole,
        }));
        let item = item(index, name, &whole);
        frames.typed(&json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
}
