//! Tests of this format with text alone.

mod cut;
mod dialects;
mod read;
mod sent;
mod stable;

use petasos_core::model::{Answer, AnswerPart, Request};
use serde_json::{Value, json};

use super::reader::ChatReader;
use crate::wire::testing::read;
use crate::wire::{Problem, Reader, Step, Target, WireFormat};

fn chunk(delta: &Value, finish_reason: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] })
}

/// The answer that these deltas make, with a reason to finish behind them.
fn answer(deltas: &[Value]) -> Answer {
    let mut events: Vec<Value> = deltas.iter().map(|delta| chunk(delta, &Value::Null)).collect();
    events.push(chunk(&json!({}), &json!("stop")));
    let mut reader = ChatReader::default();
    read(&mut reader, &events).unwrap();
    reader.closed().unwrap()
}

/// What these events come to, the last of which is usually `[DONE]`.
fn finished(events: &[Value]) -> Result<Answer, Problem> {
    match read(&mut ChatReader::default(), events)?.pop() {
        Some(Step::Finished(answer)) => Ok(answer),
        steps => panic!("{steps:?}"),
    }
}

/// Names and arguments of the calls.
fn calls(parts: &[AnswerPart]) -> Vec<(&str, &str)> {
    let mut calls = Vec::new();
    for part in parts {
        if let AnswerPart::ToolCall { name, arguments, .. } = part {
            calls.push((name.as_str(), arguments.as_str()));
        }
    }
    calls
}

/// A body and the settings that it leaves out.
fn sent(request: &Request, target: &Target<'_>) -> (Value, Vec<&'static str>) {
    let body = super::OpenaiChat.body(request, target);
    (serde_json::from_str(&body.json).unwrap(), body.left_out)
}
