//! OpenAI's chat completions.

use petasos_core::model::{Stop, Usage};
use serde_json::{Value, json};

use super::{Frames, halves, words};
use crate::model_server::reply::Item;

pub(super) fn answer(frames: &mut Frames, items: &[Item], usage: Usage, stop: Stop) {
    delta(frames, &json!({ "role": "assistant", "content": "" }));
    let mut calls = 0;
    for item in items {
        match item {
            Item::Thinking(text) => {
                words(text).for_each(|word| delta(frames, &json!({ "reasoning_content": word })));
            }
            Item::Text(text) => {
                let field = if stop == Stop::Refusal { "refusal" } else { "content" };
                words(text).for_each(|word| delta(frames, &json!({ field: word })));
            }
            Item::Calls(batch) => {
                tool_calls(frames, batch, calls);
                calls += batch.len();
            }
            Item::Gate(gate) => frames.gate(gate),
        }
    }
    let reason = match stop {
        Stop::EndTurn | Stop::Refusal => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
    };
    chunk(frames, &json!([{ "index": 0, "delta": {}, "finish_reason": reason }]), &Value::Null);
    let usage = json!({
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cached_input_tokens },
    });
    chunk(frames, &json!([]), &usage);
    frames.data("[DONE]");
}

/// All calls start, then the halves of their arguments come by turns.
fn tool_calls(frames: &mut Frames, batch: &[(String, Value)], first: usize) {
    for (index, (name, _)) in (first..).zip(batch) {
        let call = json!({
            "index": index,
            "id": format!("call_{index}"),
            "type": "function",
            "function": { "name": name, "arguments": "" },
        });
        delta(frames, &json!({ "tool_calls": [call] }));
    }
    for half in 0..2 {
        for (index, (_, arguments)) in (first..).zip(batch) {
            let call = json!({ "index": index, "function": { "arguments": halves(arguments)[half] } });
            delta(frames, &json!({ "tool_calls": [call] }));
        }
    }
}

fn delta(frames: &mut Frames, delta: &Value) {
    chunk(frames, &json!([{ "index": 0, "delta": delta, "finish_reason": null }]), &Value::Null);
}

fn chunk(frames: &mut Frames, choices: &Value, usage: &Value) {
    let chunk = json!({
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "scripted",
        "choices": choices,
        "usage": usage,
    });
    frames.data(&chunk.to_string());
}
