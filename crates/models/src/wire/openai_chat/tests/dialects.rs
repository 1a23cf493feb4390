//! What single vendors and servers do differently; each test names where it was seen.

use petasos_core::model::{AnswerPart, Stop, Usage};
use serde_json::{Value, json};

use super::super::reader::ChatReader;
use super::{answer, calls, chunk, finished};
use crate::wire::testing::read;
use crate::wire::{Problem, Reader};

fn piece(index: Value, id: &str, name: &str, arguments: &str) -> Value {
    json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] })
}

fn done() -> Value {
    json!("[DONE]")
}

fn said(text: &str) -> Value {
    chunk(&json!({ "content": text }), &Value::Null)
}

/// NousResearch/hermes-agent#8259, vllm-project/vllm#14951, ggml-org/llama.cpp#13774.
#[test]
fn a_tool_name_repeated_in_each_delta_is_taken_once() {
    for names in
        [["terminal", "terminal", "terminal"], ["term", "terminal", ""], ["term", "inal", "terminal"]]
    {
        let arguments = ["", "{\"command\":", "\"ls\"}"];
        let pieces = names.iter().zip(arguments);
        let pieces: Vec<Value> =
            pieces.map(|(name, arguments)| piece(json!(0), "call_1", name, arguments)).collect();
        assert_eq!(calls(&answer(&pieces).parts), [("terminal", "{\"command\":\"ls\"}")], "{names:?}");
    }
}

#[test]
fn a_new_call_begins_when_a_name_comes_again() {
    let none = Value::Null;
    let two = [("a", "{\"x\":1}"), ("a", "{\"x\":2}")];
    // Neither index nor id, whole and in pieces; an id of its own for each piece; the same with one index for all.
    for pieces in [
        vec![piece(none.clone(), "", "a", "{\"x\":1}"), piece(none.clone(), "", "a", "{\"x\":2}")],
        vec![
            piece(none.clone(), "", "a", ""),
            piece(none.clone(), "", "", "{\"x\":1}"),
            piece(none.clone(), "", "a", "{\"x\""),
            piece(none.clone(), "", "", ":2}"),
        ],
        vec![
            piece(none.clone(), "1", "a", "{\"x\""),
            piece(none.clone(), "2", "", ":1}"),
            piece(none.clone(), "3", "a", "{\"x\""),
            piece(none.clone(), "4", "a", ":2}"),
        ],
        vec![
            piece(json!(0), "1", "a", "{\"x\""),
            piece(json!(0), "2", "", ":1}"),
            piece(json!(1), "3", "a", "{\"x\""),
            piece(json!(1), "4", "", ":2}"),
        ],
    ] {
        assert_eq!(calls(&answer(&pieces).parts), two, "{pieces:?}");
    }
    let different = [piece(none.clone(), "", "a", ""), piece(none, "", "b", "{}")];
    assert_eq!(calls(&answer(&different).parts), [("a", ""), ("b", "{}")]);
}

#[test]
fn a_call_keeps_the_vendors_id_and_its_unknown_fields() {
    // labring/aiproxy#450 and langgenius/dify#29187: Gemini's thought signatures.
    let signature = json!({ "google": { "thought_signature": "abc" } });
    let first = json!({ "tool_calls": [{
        "index": 0, "id": "call_vX1", "type": "function", "extra_content": signature,
        "function": { "name": "look", "arguments": "", "note": null },
    }] });
    let answer = answer(&[first, piece(json!(0), "", "", "{}"), piece(json!(1), "", "see", "{}")]);
    let opaque = |part: &AnswerPart| match part {
        AnswerPart::ToolCall { opaque, .. } => opaque.clone().map(|opaque| (opaque.format, opaque.data)),
        _ => None,
    };
    let kept = json!({ "id": "call_vX1", "extra_content": signature });
    assert_eq!(opaque(&answer.parts[0]), Some(("openai-chat".to_owned(), kept)));
    assert_eq!(opaque(&answer.parts[1]), None);
}

/// agno-agi/agno#8794: the pieces of a block share an index, and the signature comes last.
#[test]
fn reasoning_details_are_merged_by_index() {
    let detail = |detail: Value| json!({ "reasoning": "", "reasoning_details": [detail] });
    let deltas = [
        json!({ "reasoning": "Let me", "reasoning_details": [
            { "type": "reasoning.text", "text": "Let me", "format": "anthropic-claude-v1", "index": 0 },
        ] }),
        detail(json!({ "type": "reasoning.text", "text": " see.", "signature": null, "index": 0 })),
        detail(json!({ "type": "reasoning.text", "signature": "Et8B", "index": 0 })),
        detail(json!({ "type": "reasoning.encrypted", "data": "xyz", "index": 1 })),
        json!({ "content": "Hi" }),
    ];
    let parts = answer(&deltas).parts;
    let AnswerPart::Thinking { text, opaque: Some(opaque) } = &parts[0] else { panic!("{parts:?}") };
    assert_eq!(text, "Let me");
    assert_eq!(
        opaque.data,
        json!({ "field": "reasoning", "reasoning_details": [
            { "type": "reasoning.text", "text": "Let me see.", "format": "anthropic-claude-v1", "index": 0,
              "signature": "Et8B" },
            { "type": "reasoning.encrypted", "data": "xyz", "index": 1 },
        ] })
    );
    // Without anything to read, it stands in front.
    let parts = answer(&[json!({ "content": "Hi" }), deltas[3].clone()]).parts;
    let AnswerPart::Thinking { text, opaque: Some(_) } = &parts[0] else { panic!("{parts:?}") };
    assert_eq!((text.as_str(), parts.len()), ("", 2));
}

#[test]
fn a_missing_reason_is_fine_before_the_end_marker_if_there_is_an_answer() {
    let answer = finished(&[said("Hi"), done()]).unwrap();
    assert_eq!((answer.parts.len(), answer.stop), (1, Stop::EndTurn));
    let call = |arguments| chunk(&piece(json!(0), "1", "a", arguments), &Value::Null);
    assert_eq!(finished(&[call("{\"x\":1}"), done()]).unwrap().stop, Stop::ToolUse);
    for events in [&[done()][..], &[call("{\"x\":"), done()], &[said("Hi"), call("{\"x\":"), done()]] {
        assert!(matches!(finished(events), Err(Problem::Malformed(_))), "{events:?}");
    }
    // A stream that just ends may have been cut: it counts only if nobody will ask again.
    let mut reader = ChatReader::default();
    read(&mut reader, &[said("Hi")]).unwrap();
    assert_eq!(reader.closed(), None);
    assert_eq!(reader.unfinished().unwrap().parts, [AnswerPart::Text("Hi".to_owned())]);
    let mut empty = chunk(&json!({ "content": "Hi" }), &json!(""));
    empty["choices"][0]["delta"]["role"] = json!("assistant");
    let mut reader = ChatReader::default();
    read(&mut reader, &[empty]).unwrap();
    assert_eq!(reader.closed(), None, "an empty reason is none");
}

#[test]
fn a_final_message_is_read_where_nothing_came_before_it() {
    let message = |message: Value| json!({ "choices": [{ "message": message, "finish_reason": "stop" }] });
    let calls_of = json!([{ "id": "1", "function": { "name": "a", "arguments": "{}" } }]);
    let alone =
        finished(&[message(json!({ "content": "Hi there", "tool_calls": calls_of })), done()]).unwrap();
    assert_eq!(alone.parts[0], AnswerPart::Text("Hi there".to_owned()));
    assert_eq!(calls(&alone.parts), [("a", "{}")]);
    let repeated = [
        chunk(&json!({ "reasoning": "Hm." }), &Value::Null),
        said("Hi there"),
        chunk(&piece(json!(0), "1", "a", "{}"), &Value::Null),
        message(json!({ "reasoning": "Hm.", "content": "Hi there", "tool_calls": calls_of })),
        done(),
    ];
    let repeated = finished(&repeated).unwrap();
    assert_eq!(repeated.parts.len(), 3, "{repeated:?}");
    let rest = finished(&[said("Hi"), message(json!({ "content": "Hi there" })), done()]).unwrap();
    assert_eq!(rest.parts, [AnswerPart::Text("Hi there".to_owned())]);
    let pieces = ["Hi", " there"].map(|text| json!({ "choices": [{ "message": { "content": text } }] }));
    let pieces = finished(&[pieces[0].clone(), pieces[1].clone(), done()]).unwrap();
    assert_eq!(pieces.parts, [AnswerPart::Text("Hi there".to_owned())]);
}

#[test]
fn an_answer_in_one_piece_is_read_like_a_stream() {
    let whole = json!({
        "id": "chatcmpl-1", "object": "chat.completion", "model": "m-1",
        "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Let me look.", "reasoning_content": "Hm.",
            "tool_calls": [
                { "id": "1", "type": "function", "function": { "name": "a", "arguments": "{\"x\":1}" } },
                { "id": "2", "type": "function", "function": { "name": "a", "arguments": "{\"x\":2}" } },
            ],
        } }],
        "usage": { "prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8 },
    });
    let mut steps = Vec::new();
    ChatReader::default().whole(&whole, &mut steps).unwrap();
    let Some(crate::wire::Step::Finished(answer)) = steps.pop() else { panic!("{steps:?}") };
    assert_eq!((steps.len(), answer.stop, answer.usage.input_tokens), (2, Stop::ToolUse, 5));
    assert_eq!(calls(&answer.parts), [("a", "{\"x\":1}"), ("a", "{\"x\":2}")]);
    let error = ChatReader::default().whole(&json!({ "error": { "message": "no" } }), &mut steps);
    assert!(matches!(error, Err(Problem::Reported { .. })));
}

#[test]
fn the_call_of_old_is_read() {
    let call =
        |name: &str, arguments: &str| json!({ "function_call": { "name": name, "arguments": arguments } });
    let answer =
        answer(&[call("look", ""), json!({ "function_call": { "arguments": "{\"x\"" } }), call("", ":1}")]);
    assert_eq!((calls(&answer.parts).as_slice(), answer.stop), (&[("look", "{\"x\":1}")][..], Stop::ToolUse));
}

#[test]
fn reasons_to_finish_are_mapped() {
    let stopped = |reason: &str| finished(&[said("Hi"), chunk(&json!({}), &json!(reason)), done()]);
    for (reason, stop) in [
        ("stop", Stop::EndTurn),
        ("eos", Stop::EndTurn),
        ("length", Stop::MaxTokens),
        ("max_tokens", Stop::MaxTokens),
        ("MAX_TOKENS", Stop::MaxTokens),
        ("SAFETY", Stop::Refusal),
        ("content_filter", Stop::Refusal),
    ] {
        assert_eq!(stopped(reason).unwrap().stop, stop, "{reason}");
    }
    for reason in ["error", "network_error"] {
        assert!(matches!(stopped(reason), Err(Problem::Reported { .. })), "{reason}");
    }
}

#[test]
fn an_empty_answer_is_no_answer() {
    let stopped = |delta: Value, reason: &str| finished(&[chunk(&delta, &json!(reason)), done()]);
    for delta in
        [json!({}), json!({ "content": "" }), json!({ "reasoning": "Hm." }), json!({ "tool_calls": [] })]
    {
        assert_eq!(stopped(delta.clone(), "stop"), Err(Problem::Empty), "{delta}");
        assert!(stopped(delta.clone(), "length").is_ok(), "{delta}");
        assert!(stopped(delta, "content_filter").is_ok());
    }
}

#[test]
fn errors_are_found_wherever_they_stand() {
    for event in [
        json!({ "error": { "code": 502, "message": "upstream" } }),
        json!({ "choices": [{ "delta": { "content": "" }, "finish_reason": "error", "error": { "code": 502, "message": "upstream" } }] }),
        json!({ "object": "error", "message": "upstream", "code": 502 }),
        json!({ "type": "error", "message": "upstream", "code": 502 }),
    ] {
        let expected = Problem::Reported { kind: "502".to_owned(), message: "upstream".to_owned() };
        assert_eq!(read(&mut ChatReader::default(), std::slice::from_ref(&event)), Err(expected), "{event}");
    }
}

#[test]
fn usage_has_many_names() {
    let counts = |cached, written| Usage {
        input_tokens: 90,
        output_tokens: 7,
        cached_input_tokens: cached,
        cache_write_tokens: written,
        cost_nanos: None,
    };
    let with = |more: Value| {
        let mut usage = json!({ "prompt_tokens": 90, "completion_tokens": 7 });
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        usage
    };
    for (event, usage) in [
        (
            json!({ "usage": with(json!({ "prompt_tokens_details": { "cached_tokens": 60 } })) }),
            counts(60, 0),
        ),
        (json!({ "usage": with(json!({ "prompt_tokens_details": null })) }), counts(0, 0)),
        (
            json!({ "usage": with(json!({ "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 26 })) }),
            counts(64, 0),
        ),
        (
            json!({ "usage": with(json!({ "cache_read_input_tokens": 5, "cache_creation_input_tokens": 8 })) }),
            counts(5, 8),
        ),
        (
            json!({ "usage": with(json!({ "prompt_tokens_details": { "cached_tokens": 1, "cache_write_tokens": 2 } })) }),
            counts(1, 2),
        ),
        (json!({ "x_groq": { "id": "req_1", "usage": with(json!({})) } }), counts(0, 0)),
        (json!({ "choices": [{ "delta": {}, "usage": with(json!({ "cached_tokens": 3 })) }] }), counts(3, 0)),
    ] {
        let answer = finished(&[said("Hi"), event.clone(), json!({ "usage": null }), done()]).unwrap();
        assert_eq!(answer.usage, usage, "{event}");
    }
    assert_eq!(finished(&[said("Hi"), done()]).unwrap().usage, Usage::default());
}

/// Azure's first chunk has no choices, other servers send null in place of anything.
#[test]
fn empty_and_null_shapes_are_passed_over() {
    let events = [
        json!({ "choices": [], "prompt_filter_results": [] }),
        json!({ "choices": null, "usage": null, "error": null }),
        json!({ "choices": [{ "delta": null, "finish_reason": null }] }),
        chunk(
            &json!({ "content": null, "tool_calls": null, "function_call": null, "reasoning_details": null }),
            &Value::Null,
        ),
        chunk(
            &json!({ "tool_calls": [{ "function": { "name": "look", "arguments": null } }] }),
            &Value::Null,
        ),
        chunk(
            &json!({ "tool_calls": [{ "index": null, "id": null, "function": { "name": null, "arguments": "{oops" } }] }),
            &Value::Null,
        ),
        chunk(&Value::Null, &json!("whatever")),
        done(),
    ];
    // Arguments that are no JSON are the model's mistake, of which it is told.
    let answer = finished(&events).unwrap();
    assert_eq!((calls(&answer.parts).as_slice(), answer.stop), (&[("look", "{oops")][..], Stop::ToolUse));
}

#[test]
fn what_is_kept_for_a_vendor_counts_as_output() {
    let mut reader = ChatReader::default();
    let large = "x".repeat(10_000);
    let details = json!({ "reasoning_details": [{ "index": 0, "text": large }] });
    let call = json!({ "tool_calls": [{ "index": 0, "id": large, "extra_content": large, "function": { "name": "a" } }] });
    read(&mut reader, &[chunk(&details, &Value::Null), chunk(&call, &Value::Null)]).unwrap();
    assert!(reader.size() > 30_000, "{}", reader.size());
}
