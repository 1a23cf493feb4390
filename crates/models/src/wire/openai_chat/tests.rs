//! Tests of this format with text alone.

use petasos_core::model::AnswerPart;

use super::*;
use crate::wire::testing::{body, call, outcome, read, request, thinking, user};

fn chunk(delta: &Value, finish_reason: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish_reason }] })
}

fn deltas(deltas: &[Value]) -> Vec<AnswerPart> {
    let mut events: Vec<Value> = deltas.iter().map(|delta| chunk(delta, &Value::Null)).collect();
    events.push(chunk(&json!({}), &json!("stop")));
    let mut reader = ChatReader::default();
    read(&mut reader, &events).unwrap();
    reader.closed().unwrap().parts
}

#[test]
fn the_conversation_is_written_in_openais_roles() {
    let body = body(
        &OpenaiChat,
        &request(
            "Be brief.",
            vec![
                user("Hello"),
                user("Are you there?"),
                Message::Assistant(vec![
                    AssistantPart::Text("Let me ".to_owned()),
                    AssistantPart::Text("look.".to_owned()),
                    call("tu_1", "look", &json!({"at": "it"})),
                    call("tu_2", "look", &json!({})),
                ]),
                Message::ToolResults(vec![outcome("tu_1", "fine", false), outcome("tu_2", "gone", true)]),
            ],
        ),
        "http://localhost/v1",
    );
    assert_eq!(
        body,
        json!({
            "model": "m-1",
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": "Hello" },
                { "role": "user", "content": "Are you there?" },
                { "role": "assistant", "content": "Let me look.", "tool_calls": [
                    { "id": "tu_1", "type": "function", "function": { "name": "look", "arguments": "{\"at\":\"it\"}" } },
                    { "id": "tu_2", "type": "function", "function": { "name": "look", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "tu_1", "content": "fine" },
                { "role": "tool", "tool_call_id": "tu_2", "content": "Error: gone" },
            ],
            "tools": [{ "type": "function", "function": {
                "name": "look", "description": "Looks", "parameters": { "type": "object" },
            } }],
        })
    );
}

#[test]
fn the_output_limit_has_two_names() {
    let mut request = request("", vec![user("Hi")]);
    request.settings.max_output_tokens = Some(7);
    request.tools.clear();
    assert_eq!(body(&OpenaiChat, &request, "http://localhost:11434/v1")["max_tokens"], 7);
    let body = body(&OpenaiChat, &request, "https://api.openai.com/v1");
    assert_eq!(body["max_completion_tokens"], 7);
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(1), "an empty system prompt is left out");
    assert!(body.get("tools").is_none());
}

#[test]
fn reasoning_goes_back_until_the_turn_is_over() {
    let step = || {
        Message::Assistant(vec![
            thinking("Hm.", FORMAT, json!("reasoning_content")),
            thinking("Signed.", "anthropic", json!({})),
            call("tu_1", "look", &json!({})),
        ])
    };
    let results = || Message::ToolResults(vec![outcome("tu_1", "fine", false)]);
    let history = vec![user("One"), step(), results(), user("Two"), step(), results()];
    let body = body(&OpenaiChat, &request("", history), "");
    assert_eq!(body["messages"][1].get("reasoning_content"), None);
    assert_eq!(body["messages"][4]["reasoning_content"], "Hm.");
    assert_eq!(body["messages"][4]["content"], Value::Null);
}

#[test]
fn an_assistant_message_without_words_or_calls_is_left_out() {
    let only_thought = Message::Assistant(vec![thinking("Hm.", FORMAT, json!("reasoning"))]);
    let body = body(&OpenaiChat, &request("", vec![user("One"), only_thought, user("Two")]), "");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(2));
}

#[test]
fn reasoning_has_two_names_and_is_not_taken_twice() {
    let parts = deltas(&[
        json!({ "reasoning": "Six", "reasoning_content": "Six" }),
        json!({ "reasoning": " seven", "reasoning_content": "", "content": "" }),
        json!({ "content": "42" }),
        json!({ "reasoning": "More" }),
    ]);
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
    let expected = [("a", "{\"x\":1}"), ("b", "{}")].map(|(name, arguments)| AnswerPart::ToolCall {
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        opaque: None,
    });
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
        assert_eq!(deltas(pieces), expected);
    }
}

#[test]
fn content_can_come_in_blocks() {
    let thought = json!({ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] });
    let parts =
        deltas(&[json!({ "content": [thought] }), json!({ "content": [{ "type": "text", "text": "Hi" }] })]);
    let [AnswerPart::Thinking { text: thought, opaque: None }, AnswerPart::Text(said)] = parts.as_slice()
    else {
        panic!("{parts:?}")
    };
    assert_eq!((thought.as_str(), said.as_str()), ("Hm.", "Hi"));
}

#[test]
fn a_missing_end_marker_is_fine_after_a_reason_only() {
    let mut reader = ChatReader::default();
    read(&mut reader, &[chunk(&json!({ "content": "Hi" }), &Value::Null)]).unwrap();
    assert_eq!(reader.closed(), None);
    let done = read(&mut ChatReader::default(), &[json!("[DONE]")]);
    assert!(matches!(done, Err(Problem::Malformed(_))), "{done:?}");
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

#[test]
fn pictures_are_parts_and_those_of_results_follow_them() {
    let url = "data:image/png;base64,AAAA";
    let content = vec![Block::text("What is this?"), Block::Image { url: url.to_owned() }];
    let mut seen = outcome("tu_1", "a hat", false);
    seen.images = vec![url.to_owned()];
    let call = Message::Assistant(vec![call("tu_1", "look", &json!({}))]);
    let body = body(
        &OpenaiChat,
        &request("", vec![Message::User(content), call, Message::ToolResults(vec![seen])]),
        "",
    );
    let image = json!({ "type": "image_url", "image_url": { "url": url } });
    let messages = &body["messages"];
    assert_eq!(messages[0]["content"], json!([{ "type": "text", "text": "What is this?" }, image]));
    assert_eq!(messages[2]["content"], "a hat");
    assert_eq!((&messages[3]["role"], &messages[3]["content"][1]), (&json!("user"), &image));
}
