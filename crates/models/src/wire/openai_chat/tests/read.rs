//! What is read, whatever server sent it.

use petasos_core::model::{AnswerPart, Stop};
use serde_json::{Value, json};

use super::super::reader::ChatReader;
use super::{answer, calls, chunk};
use crate::wire::testing::read;
use crate::wire::{Problem, Step};

#[test]
fn reasoning_has_two_names_and_is_not_taken_twice() {
    let parts = answer(&[
        json!({ "reasoning": "Six", "reasoning_content": "Six" }),
        json!({ "reasoning": " seven", "reasoning_content": "", "content": "" }),
        json!({ "content": "42" }),
        json!({ "reasoning": "More" }),
    ])
    .parts;
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            AnswerPart::Thinking { text, .. } | AnswerPart::Text(text) => text.as_str(),
            AnswerPart::ToolCall { .. } => "call",
        })
        .collect();
    assert_eq!(texts, ["Six seven", "42", "More"]);
}

#[test]
fn calls_are_told_apart_by_index_or_by_id() {
    let piece = |index: Value, id: &str, name: &str, arguments: Value| json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] });
    let expected = [("a", "{\"x\":1}"), ("b", "{}")];
    // By index; with all indexes 0; without any index, the arguments not as text.
    let by_index = [
        piece(json!(0), "1", "a", json!("{\"x\"")),
        piece(json!(1), "2", "b", json!("{")),
        piece(json!(0), "", "", json!(":1}")),
        piece(json!(1), "2", "", json!("}")),
    ];
    let all_zero = [piece(json!(0), "1", "a", json!("{\"x\":1}")), piece(json!(0), "2", "b", json!("{}"))];
    let none = [piece(Value::Null, "1", "a", json!({"x": 1})), piece(Value::Null, "2", "b", json!({}))];
    for pieces in [&by_index[..], &all_zero, &none] {
        assert_eq!(calls(&answer(pieces).parts), expected);
    }
}

#[test]
fn content_can_come_in_blocks() {
    let thought = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] });
    let parts =
        answer(&[json!({ "content": [thought] }), json!({ "content": [{ "type": "text", "text": "Hi" }] })])
            .parts;
    let [AnswerPart::Thinking { text: thought, opaque: None }, AnswerPart::Text(said)] = parts.as_slice()
    else {
        panic!("{parts:?}")
    };
    assert_eq!((thought.as_str(), said.as_str()), ("Hm.", "Hi"));
}

#[test]
fn filters_and_stray_shapes() {
    let mut reader = ChatReader::default();
    let events = [
        chunk(&json!({ "content": "Hi" }), &json!("content_filter")),
        json!({ "error": null }),
        json!("[DONE]"),
    ];
    let steps = read(&mut reader, &events).unwrap();
    let Some(Step::Finished(answer)) = steps.last() else { panic!("{steps:?}") };
    assert_eq!(answer.stop, Stop::Refusal);
    for stray in [json!([]), json!(1), json!("nonsense")] {
        assert!(read(&mut ChatReader::default(), &[stray]).is_err());
    }
    let nameless = json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] });
    let mut reader = ChatReader::default();
    let result = read(&mut reader, &[chunk(&nameless, &json!("tool_calls")), json!("[DONE]")]);
    assert!(matches!(result, Err(Problem::Malformed(_))));
}
