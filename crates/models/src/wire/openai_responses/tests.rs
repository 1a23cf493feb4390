//! Tests of this format with text alone.

use petasos_core::model::AnswerPart;

use super::*;
use crate::wire::testing::{body, call, outcome, read, request, thinking, user};

fn reasoning(text: &str) -> Value {
    json!({ "type": "reasoning", "summary": [], "encrypted_content": text })
}

#[test]
fn the_conversation_is_a_list_of_items() {
    let body = body(
        &OpenaiResponses,
        &request(
            "Be brief.",
            vec![
                user("Hello"),
                Message::Assistant(vec![
                    thinking("Hm.", FORMAT, reasoning("gAAA")),
                    thinking("Signed.", "anthropic", json!({})),
                    AssistantPart::Text("Let me look.".to_owned()),
                    call("tu_1", "look", &json!({"at": "it"})),
                ]),
                Message::ToolResults(vec![outcome("tu_1", "fine", false)]),
                Message::Assistant(vec![thinking("Cut off.", FORMAT, reasoning("gBBB"))]),
            ],
        ),
        "",
    );
    assert_eq!(
        body,
        json!({
            "model": "m-1",
            "stream": true,
            "store": false,
            "include": ["reasoning.encrypted_content"],
            "reasoning": { "summary": "auto" },
            "instructions": "Be brief.",
            "input": [
                { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Hello" }] },
                reasoning("gAAA"),
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Let me look." }] },
                { "type": "function_call", "call_id": "tu_1", "name": "look", "arguments": "{\"at\":\"it\"}" },
                { "type": "function_call_output", "call_id": "tu_1", "output": "fine" },
            ],
            "tools": [{
                "type": "function", "name": "look", "description": "Looks",
                "parameters": { "type": "object" }, "strict": false,
            }],
        })
    );
}

#[test]
fn older_models_are_not_asked_for_reasoning() {
    for (model, expected) in [
        ("gpt-4.1-mini", false),
        ("gpt-4o", false),
        ("openai/gpt-4o", false),
        ("gpt-5-chat-latest", false),
        ("gpt-5-mini", true),
        ("o4-mini", true),
        ("something-new", true),
    ] {
        assert_eq!(may_reason(model), expected, "{model}");
    }
    let mut request = request("", vec![user("Hi")]);
    request.model = "gpt-4o".to_owned();
    request.settings.max_output_tokens = Some(9);
    let body = body(&OpenaiResponses, &request, "");
    assert!(body.get("include").is_none() && body.get("reasoning").is_none());
    assert!(body.get("instructions").is_none());
    assert_eq!(body["max_output_tokens"], 9);
}

#[test]
fn reasoning_is_kept_without_its_id_and_its_sections_apart() {
    let summary =
        json!([{ "type": "summary_text", "text": "One" }, { "type": "summary_text", "text": "Two" }]);
    let events = [
        json!({ "type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0 }),
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "One" }),
        json!({ "type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1 }),
        json!({ "type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "Two" }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item":
            { "id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAA" } }),
        json!({ "type": "response.completed", "response": { "status": "completed" } }),
    ];
    let steps = read(&mut ResponsesReader::default(), &events).unwrap();
    let Some(Step::Finished(answer)) = steps.last() else { panic!("{steps:?}") };
    let data = json!({ "type": "reasoning", "summary": summary, "encrypted_content": "gAAA" });
    let opaque = Some(Opaque { format: FORMAT.to_owned(), provider: None, data });
    assert_eq!(answer.parts, [AnswerPart::Thinking { text: "One\n\nTwo".to_owned(), opaque }]);
}

#[test]
fn errors_come_in_three_shapes() {
    for event in [
        json!({ "type": "error", "code": "server_error", "message": "Oops", "param": null }),
        json!({ "type": "error", "error": { "code": "server_error", "message": "Oops" } }),
        json!({ "type": "response.failed", "response": { "error": { "code": "server_error", "message": "Oops" } } }),
    ] {
        let problem = read(&mut ResponsesReader::default(), &[event]).unwrap_err();
        assert_eq!(
            problem,
            Problem::Reported { kind: "server_error".to_owned(), message: "Oops".to_owned() }
        );
    }
}

#[test]
fn a_call_that_comes_in_one_piece_is_read_too() {
    let item = json!({ "type": "function_call", "name": "look", "arguments": "{}" });
    let events = [
        json!({ "type": "response.output_item.done", "output_index": 3, "item": item }),
        json!({ "type": "response.completed", "response": {} }),
    ];
    let steps = read(&mut ResponsesReader::default(), &events).unwrap();
    let Some(Step::Finished(answer)) = steps.last() else { panic!("{steps:?}") };
    let expected = AnswerPart::ToolCall { name: "look".to_owned(), arguments: "{}".to_owned(), opaque: None };
    assert_eq!((answer.parts.as_slice(), answer.stop), (&[expected][..], Stop::ToolUse));
}

#[test]
fn pictures_are_input_images() {
    let url = "https://example.com/a.png";
    let content = vec![Block::text("What is this?"), Block::Image { url: url.to_owned() }];
    let mut seen = outcome("tu_1", "a hat", false);
    seen.images = vec![url.to_owned()];
    let body = body(
        &OpenaiResponses,
        &request("", vec![Message::User(content), Message::ToolResults(vec![seen])]),
        "",
    );
    let image = json!({ "type": "input_image", "image_url": url });
    assert_eq!(
        body["input"][0]["content"],
        json!([{ "type": "input_text", "text": "What is this?" }, image])
    );
    assert_eq!(body["input"][1]["output"], json!([{ "type": "input_text", "text": "a hat" }, image]));
}
