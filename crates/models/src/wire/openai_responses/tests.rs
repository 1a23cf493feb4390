//! Tests of this format with text alone.

use petasos_core::event::Block;
use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Opaque, Stop};
use petasos_core::model_settings::ModelSettings;

use super::*;
use crate::wire::call_ids::{CallIds, kept};
use crate::wire::testing::{body, call, outcome, read, request, target, thinking, told, user};
use crate::wire::{Problem, Step};

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
    let id = CallIds::of(&[], FORMAT).next_call("tu_1");
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
                { "type": "function_call", "call_id": id, "name": "look", "arguments": "{\"at\":\"it\"}" },
                { "type": "function_call_output", "call_id": id, "output": "fine" },
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

fn with(settings: Value) -> Request {
    let settings: ModelSettings = serde_json::from_value(settings).unwrap();
    Request { settings, ..request("", vec![user("Hi")]) }
}

#[test]
fn settings_have_the_vendors_names() {
    for (settings, expected, left_out) in [
        (json!({ "maxOutputTokens": 7 }), json!({ "max_output_tokens": 7 }), &[][..]),
        (json!({ "temperature": 0.5, "topP": 0.25 }), json!({ "temperature": 0.5, "top_p": 0.25 }), &[]),
        (
            json!({ "reasoningEffort": "none" }),
            json!({ "reasoning": { "summary": "auto", "effort": "none" } }),
            &[],
        ),
        (
            json!({ "reasoningEffort": "xhigh" }),
            json!({ "reasoning": { "summary": "auto", "effort": "xhigh" } }),
            &[],
        ),
        (json!({ "parallelToolCalls": false }), json!({ "parallel_tool_calls": false }), &[]),
        (
            json!({ "stopSequences": ["a"], "seed": 1, "thinkingBudgetTokens": 2_000 }),
            json!({ "stop": null, "seed": null, "thinking": null }),
            &["stopSequences", "seed", "thinkingBudgetTokens"],
        ),
        (json!({ "extraBody": { "store": true, "tools": [] } }), json!({ "store": true, "tools": [] }), &[]),
    ] {
        let (body, found) = told(&OpenaiResponses, &with(settings.clone()), &target(""));
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&body[field], value, "{field} of {settings}");
        }
        assert_eq!(found, left_out, "{settings}");
    }
    let mut request = with(json!({ "parallelToolCalls": true }));
    request.tools.clear();
    assert!(body(&OpenaiResponses, &request, "").get("parallel_tool_calls").is_none());
}

#[test]
fn refused_fields_are_left_out_and_their_settings_named() {
    let settings = json!({ "temperature": 1, "reasoningEffort": "low" });
    for (drops, reasoning, left_out) in [
        (
            &["temperature", "reasoning.effort"][..],
            json!({ "summary": "auto" }),
            &["temperature", "reasoningEffort"][..],
        ),
        (&["reasoning.summary", "include", "store"], json!({ "effort": "low" }), &[]),
        (&["reasoning"], Value::Null, &["reasoningEffort"]),
    ] {
        let (body, found) = told(&OpenaiResponses, &with(settings.clone()), &Target { drops, ..target("") });
        assert_eq!((&body["reasoning"], found.as_slice()), (&reasoning, left_out), "{drops:?}");
        let is_told = drops.contains(&"include");
        assert_eq!(body.get("include").is_none() && body.get("store").is_none(), is_told, "{drops:?}");
    }
}

fn answer(events: &[Value]) -> Result<Answer, Problem> {
    match read(&mut ResponsesReader::default(), events)?.pop() {
        Some(Step::Finished(answer)) => Ok(answer),
        other => panic!("{other:?}"),
    }
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "content": [{ "type": "output_text", "text": text }] })
}

/// `TanStack/ai#937`: a server that streams no deltas. `QuantumNous/new-api#4362`: one whose last event is empty.
#[test]
fn text_is_read_wherever_it_comes_first() {
    let delta =
        json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi" });
    let done =
        json!({ "type": "response.output_text.done", "output_index": 0, "content_index": 0, "text": "Hi" });
    let item = json!({ "type": "response.output_item.done", "output_index": 0, "item": message("Hi") });
    let whole = json!({ "type": "response.completed", "response": { "output": [message("Hi")] } });
    let bare = json!({ "type": "response.completed", "response": { "output": [] } });
    for events in [
        &[delta.clone(), done.clone(), item.clone(), whole.clone()][..],
        &[delta, bare.clone()],
        &[done, item.clone(), bare.clone()],
        &[item, bare],
        &[whole],
    ] {
        let read = answer(events).unwrap();
        assert_eq!(
            (read.parts, read.stop),
            (vec![AnswerPart::Text("Hi".to_owned())], Stop::EndTurn),
            "{events:?}"
        );
    }
}

#[test]
fn calls_that_come_only_at_the_end_are_read_and_their_ids_go_back() {
    let item = json!({ "type": "function_call", "call_id": "call_7", "name": "look", "arguments": "{}" });
    let events = [
        json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Well" }),
        json!({ "type": "response.completed", "response": { "output": [message("Well"), item] } }),
    ];
    let read = answer(&events).unwrap();
    let opaque = Some(kept(FORMAT, "call_7"));
    let call =
        AnswerPart::ToolCall { name: "look".to_owned(), arguments: "{}".to_owned(), opaque: opaque.clone() };
    assert_eq!((&read.parts[1], read.stop), (&call, Stop::ToolUse));
    let (id, name) = ("tu_1".to_owned(), "look".to_owned());
    let call = AssistantPart::ToolCall { id, name, input: serde_json::Map::new(), opaque };
    let messages = vec![
        user("Hi"),
        Message::Assistant(vec![call]),
        Message::ToolResults(vec![outcome("tu_1", "ok", false)]),
    ];
    let body = body(&OpenaiResponses, &request("", messages), "");
    assert_eq!(
        (&body["input"][1]["call_id"], &body["input"][2]["call_id"]),
        (&json!("call_7"), &json!("call_7"))
    );
}

#[test]
fn an_answer_that_holds_nothing_is_an_error() {
    let completed = |response: Value| json!({ "type": "response.completed", "response": response });
    assert_eq!(answer(&[completed(json!({ "status": "completed", "output": [] }))]), Err(Problem::Empty));
    let cut = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } });
    assert_eq!(answer(&[completed(cut)]).unwrap().stop, Stop::MaxTokens);
}

#[test]
fn items_that_have_ended_are_an_answer_without_the_last_event() {
    let added =
        json!({ "type": "response.output_item.added", "output_index": 0, "item": { "type": "message" } });
    let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "Hi" });
    let done = json!({ "type": "response.output_item.done", "output_index": 0, "item": message("Hi") });
    let open = json!({ "type": "response.output_item.added", "output_index": 1, "item": { "type": "function_call", "name": "look" } });
    let mut reader = ResponsesReader::default();
    read(&mut reader, &[added, delta.clone()]).unwrap();
    assert!(reader.closed().is_none());
    read(&mut reader, &[done, open]).unwrap();
    assert!(reader.closed().is_none());
    let item = json!({ "type": "function_call", "name": "look", "arguments": "{}" });
    read(&mut reader, &[json!({ "type": "response.output_item.done", "output_index": 1, "item": item })])
        .unwrap();
    assert_eq!(reader.closed().unwrap().stop, Stop::ToolUse);
    // The marker of another format, after text that has not ended.
    assert_eq!(answer(&[delta, json!("[DONE]")]).unwrap().stop, Stop::EndTurn);
}

#[test]
fn a_whole_answer_is_read_like_a_stream() {
    let whole = json!({
        "object": "response", "status": "completed", "error": null,
        "output": [
            { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "Hm." }], "encrypted_content": "gAAA" },
            message("Let me look."),
            { "type": "function_call", "call_id": "call_7", "name": "look", "arguments": "{}" },
        ],
        "usage": { "input_tokens": 50, "output_tokens": 6, "input_tokens_details": { "cached_tokens": 20, "cache_write_tokens": 10 } },
    });
    let mut steps = Vec::new();
    ResponsesReader::default().whole(&whole, &mut steps).unwrap();
    let Some(Step::Finished(answer)) = steps.pop() else { panic!("{steps:?}") };
    assert_eq!(steps, [Step::Thinking("Hm.".to_owned()), Step::Text("Let me look.".to_owned())]);
    assert_eq!((answer.parts.len(), answer.stop), (3, Stop::ToolUse));
    assert_eq!((answer.usage.cached_input_tokens, answer.usage.cache_write_tokens), (20, 10));
}
