//! Tests of this format with text alone.

use petasos_core::event::Block;
use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Opaque, Stop, Usage};
use petasos_core::model_settings::ModelSettings;

use super::*;
use crate::wire::call_ids::{CallIds, kept};
use crate::wire::testing::{body, call, outcome, read, request, target, thinking, told, user};
use crate::wire::{Problem, Step};

#[test]
fn roles_alternate_and_the_end_is_cached() {
    let signed = json!({ "type": "thinking", "thinking": "Hm.", "signature": "Eq" });
    let body = body(
        &Anthropic,
        &request(
            "Be brief.",
            vec![
                user("Hello"),
                user("Are you there?"),
                Message::Assistant(vec![
                    thinking("Hm.", FORMAT, signed.clone()),
                    thinking("Other.", "openai-chat", json!("reasoning")),
                    AssistantPart::Text(" ".to_owned()),
                    call("tu_1", "look", &json!({"at": "it"})),
                    call("tu_2", "look", &json!({})),
                ]),
                Message::ToolResults(vec![outcome("tu_1", "", false), outcome("tu_2", "gone", true)]),
                user("Go on"),
            ],
        ),
        "",
    );
    let cached = json!({ "type": "ephemeral" });
    let [first, second] = ["tu_1", "tu_2"].map(|id| CallIds::of(&[], FORMAT).next_call(id));
    assert_eq!(
        body,
        json!({
            "model": "m-1",
            "max_tokens": 16_000,
            "stream": true,
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": cached }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Hello" },
                    { "type": "text", "text": "Are you there?" },
                ] },
                { "role": "assistant", "content": [
                    signed,
                    { "type": "tool_use", "id": first, "name": "look", "input": { "at": "it" } },
                    { "type": "tool_use", "id": second, "name": "look", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": first },
                    { "type": "tool_result", "tool_use_id": second, "content": "gone", "is_error": true },
                    { "type": "text", "text": "Go on", "cache_control": cached },
                ] },
            ],
            "tools": [{
                "name": "look", "description": "Looks", "input_schema": { "type": "object" }, "cache_control": cached,
            }],
        })
    );
}

#[test]
fn an_empty_system_prompt_and_trailing_reasoning_are_left_out() {
    let cut_off = Message::Assistant(vec![
        AssistantPart::Text("Well".to_owned()),
        thinking("Hm.", FORMAT, json!({ "type": "redacted_thinking", "data": "Em" })),
        AssistantPart::Text("\n".to_owned()),
    ]);
    let mut request = request("", vec![user("Hello"), cut_off, user("Go on")]);
    request.settings.max_output_tokens = Some(3);
    let body = body(&Anthropic, &request, "");
    assert_eq!((body.get("system"), &body["max_tokens"]), (None, &json!(3)));
    assert_eq!(body["messages"][1]["content"], json!([{ "type": "text", "text": "Well" }]));
}

#[test]
fn what_was_thought_goes_back_as_it_came() {
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "Hm" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "." } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "Eq" } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "redacted_thinking", "data": "Em" } }),
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "toolu_7", "name": "look", "input": { "at": 1 } } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }),
        json!({ "type": "message_stop" }),
    ];
    let steps = read(&mut AnthropicReader::default(), &events).unwrap();
    let Some(Step::Finished(answer)) = steps.last() else { panic!("{steps:?}") };
    let back: Vec<AssistantPart> = answer
        .parts
        .iter()
        .map(|part| match part.clone() {
            AnswerPart::Thinking { text, opaque } => AssistantPart::Thinking { text, opaque },
            AnswerPart::Text(text) => AssistantPart::Text(text),
            AnswerPart::ToolCall { name, arguments, opaque } => {
                let input = serde_json::from_str(&arguments).unwrap();
                AssistantPart::ToolCall { id: "tu_1".to_owned(), name, input, opaque }
            }
        })
        .collect();
    let body = body(&Anthropic, &request("", vec![user("Hello"), Message::Assistant(back)]), "");
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "Hm.", "signature": "Eq" },
            { "type": "redacted_thinking", "data": "Em" },
            { "type": "tool_use", "id": "toolu_7", "name": "look", "input": { "at": 1 }, "cache_control": { "type": "ephemeral" } },
        ])
    );
}

#[test]
fn later_figures_replace_earlier_ones() {
    let events = [
        json!({ "type": "message_start", "message": { "usage":
            { "input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20, "output_tokens": 1 } } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "model_context_window_exceeded" }, "usage":
            { "input_tokens": 6, "cache_read_input_tokens": null, "output_tokens": 30 } }),
        json!({ "type": "message_stop" }),
    ];
    let steps = read(&mut AnthropicReader::default(), &events).unwrap();
    let Some(Step::Finished(answer)) = steps.last() else { panic!("{steps:?}") };
    let figures = Usage {
        input_tokens: 96,
        output_tokens: 30,
        cached_input_tokens: 70,
        cache_write_tokens: 20,
        cost_nanos: None,
    };
    assert_eq!(answer.usage, figures);
    assert_eq!(answer.stop, Stop::MaxTokens);
}

#[test]
fn confused_indexes_are_an_error() {
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "name": "look" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hi" } }),
    ];
    let problem = read(&mut AnthropicReader::default(), &events).unwrap_err();
    assert_eq!(problem, Problem::Malformed("text came under the index of a tool call".to_owned()));
}

#[test]
fn pictures_are_sources() {
    let link = "https://example.com/a.png";
    let content = vec![
        Block::text("What is this?"),
        Block::Image { url: link.to_owned() },
        Block::Image { url: "data:image/png;base64,AAAA".to_owned() },
    ];
    let mut seen = outcome("tu_1", "", false);
    seen.images = vec![link.to_owned()];
    let call = Message::Assistant(vec![call("tu_1", "look", &json!({}))]);
    let body = body(
        &Anthropic,
        &request("", vec![Message::User(content), call, Message::ToolResults(vec![seen])]),
        "",
    );
    let by_link = json!({ "type": "image", "source": { "type": "url", "url": link } });
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            { "type": "text", "text": "What is this?" },
            by_link,
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } },
        ])
    );
    assert_eq!(body["messages"][2]["content"][0]["content"], json!([by_link]));
}

fn with(settings: Value) -> Request {
    let settings: ModelSettings = serde_json::from_value(settings).unwrap();
    Request { settings, ..request("", vec![user("Hi")]) }
}

#[test]
fn settings_have_the_vendors_names() {
    for (settings, expected, left_out) in [
        (json!({ "maxOutputTokens": 7 }), json!({ "max_tokens": 7 }), &[][..]),
        (json!({ "temperature": 0.5, "topP": 0.5 }), json!({ "temperature": 0.5, "top_p": 0.5 }), &[]),
        (json!({ "stopSequences": ["END"] }), json!({ "stop_sequences": ["END"] }), &[]),
        (json!({ "stopSequences": [] }), json!({ "stop_sequences": null }), &[]),
        (json!({ "reasoningEffort": "none" }), json!({ "output_config": null }), &[]),
        (json!({ "reasoningEffort": "minimal" }), json!({ "output_config": { "effort": "low" } }), &[]),
        (json!({ "reasoningEffort": "xhigh" }), json!({ "output_config": { "effort": "xhigh" } }), &[]),
        (
            json!({ "parallelToolCalls": false }),
            json!({ "tool_choice": { "type": "auto", "disable_parallel_tool_use": true } }),
            &[],
        ),
        (json!({ "seed": 1 }), json!({ "seed": null }), &["seed"]),
        (
            json!({ "thinkingBudgetTokens": 5_000, "temperature": 0.5, "topP": 0.5 }),
            json!({ "thinking": { "type": "enabled", "budget_tokens": 5_000 }, "temperature": null, "top_p": null }),
            &["temperature", "topP"],
        ),
        (
            json!({ "thinkingBudgetTokens": 5_000, "temperature": 1, "topP": 0.99 }),
            json!({ "thinking": { "type": "enabled", "budget_tokens": 5_000 }, "temperature": 1.0, "top_p": 0.99 }),
            &[],
        ),
        // The budget is always below the limit, and never below the least that the vendor takes.
        (
            json!({ "thinkingBudgetTokens": 50_000, "maxOutputTokens": 2_000 }),
            json!({ "thinking": { "type": "enabled", "budget_tokens": 1_999 } }),
            &[],
        ),
        (
            json!({ "thinkingBudgetTokens": 1 }),
            json!({ "thinking": { "type": "enabled", "budget_tokens": 1_024 } }),
            &[],
        ),
        (
            json!({ "thinkingBudgetTokens": 1_024, "maxOutputTokens": 1_024 }),
            json!({ "thinking": null, "max_tokens": 1_024 }),
            &["thinkingBudgetTokens"],
        ),
        (
            json!({ "maxOutputTokens": 7, "extraBody": { "max_tokens": 8, "tools": [], "top_k": 3 } }),
            json!({ "max_tokens": 8, "tools": [], "top_k": 3 }),
            &[],
        ),
    ] {
        let (body, found) = told(&Anthropic, &with(settings.clone()), &target(""));
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(&body[field], value, "{field} of {settings}");
        }
        assert_eq!(found, left_out, "{settings}");
    }
}

#[test]
fn without_tools_nothing_is_said_of_their_calls() {
    let mut request = with(json!({ "parallelToolCalls": false }));
    request.tools.clear();
    let (body, left_out) = told(&Anthropic, &request, &target(""));
    assert!(body.get("tool_choice").is_none() && left_out.is_empty());
}

#[test]
fn the_limit_is_the_models_own_and_refused_fields_are_named() {
    let settings = json!({ "temperature": 1, "reasoningEffort": "high", "thinkingBudgetTokens": 2_000 });
    let drops = &["temperature", "output_config", "thinking", "cache_control"];
    let target = Target { max_output_tokens: Some(64_000), drops, ..target("") };
    let (body, left_out) = told(&Anthropic, &with(settings), &target);
    assert_eq!(body["max_tokens"], 64_000);
    assert_eq!(left_out, ["thinkingBudgetTokens", "temperature", "reasoningEffort"]);
    assert!(!body.to_string().contains("cache_control"), "{body}");
}

/// The vendor's cache: what ends at a mark is kept, and found again from a mark at most 20 blocks further, the marked one
/// among them. `coder/mux#3112` has its words for a fifth mark.
#[test]
fn long_turns_are_read_from_the_cache() {
    let mut messages = vec![user("Go")];
    let mut cached: Vec<usize> = Vec::new();
    for (turn, calls) in [1, 30, 3, 45, 100, 9, 10, 11].into_iter().enumerate() {
        let body = body(&Anthropic, &request("Be brief.", messages.clone()), "");
        let marks = body.to_string().matches("cache_control").count();
        assert!(marks <= 4, "A maximum of 4 blocks with cache_control may be provided. Found {marks}.");
        let all = body["messages"].as_array().unwrap().iter().flat_map(|m| m["content"].as_array().unwrap());
        let all: Vec<&Value> = all.collect();
        let marked: Vec<usize> =
            (0..all.len()).filter(|index| all[*index].get("cache_control").is_some()).collect();
        if let Some(before) = cached.iter().max() {
            let near = marked.iter().find(|mark| (*before..before + 20).contains(mark));
            assert!(near.is_some(), "turn {turn}: nothing of {marked:?} is near {before}");
        }
        assert_eq!(marked.last(), Some(&(all.len() - 1)));
        cached.extend(marked);
        let ids: Vec<String> = (0..calls).map(|call| format!("tu_{turn}_{call}")).collect();
        messages.push(Message::Assistant(ids.iter().map(|id| call(id, "look", &json!({}))).collect()));
        messages.push(Message::ToolResults(ids.iter().map(|id| outcome(id, "ok", false)).collect()));
    }
}

#[test]
fn a_model_that_takes_no_budget_thinks_as_it_finds_fit() {
    let target = Target { drops: &["thinking.type"], ..target("") };
    let (body, left_out) =
        told(&Anthropic, &with(json!({ "thinkingBudgetTokens": 2_000, "temperature": 0 })), &target);
    assert_eq!((&body["thinking"], body.get("temperature")), (&json!({ "type": "adaptive" }), None));
    assert_eq!(left_out, ["thinkingBudgetTokens", "temperature"]);
}

fn answer(events: &[Value]) -> Result<Answer, Problem> {
    match read(&mut AnthropicReader::default(), events)?.pop() {
        Some(Step::Finished(answer)) => Ok(answer),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_vendors_own_tools_are_passed_over() {
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {} } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "{}" } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [] } }),
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "text_delta", "text": "Found." } }),
        json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "citations_delta", "citation": {} } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "pause_turn" } }),
        json!({ "type": "message_stop", "amazon-bedrock-invocationMetrics": { "inputTokenCount": 3 } }),
    ];
    let answer = answer(&events).unwrap();
    assert_eq!((answer.parts, answer.stop), (vec![AnswerPart::Text("Found.".to_owned())], Stop::EndTurn));
}

#[test]
fn a_signature_may_come_with_the_start_of_its_block() {
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "Eq" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "Hm." } }),
        json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "thinking", "thinking": "", "signature": "Alone" } }),
        json!({ "type": "message_stop" }),
    ];
    let sealed = |text: &str, signature: &str| {
        let data = json!({ "type": "thinking", "thinking": text, "signature": signature });
        let opaque = Some(Opaque { format: FORMAT.to_owned(), provider: None, data });
        AnswerPart::Thinking { text: text.to_owned(), opaque }
    };
    assert_eq!(answer(&events).unwrap().parts, [sealed("Hm.", "Eq"), sealed("", "Alone")]);
}

#[test]
fn reasoning_without_a_seal_is_not_sent_back() {
    let unsealed = json!({ "type": "thinking", "thinking": "Hm.", "signature": "" });
    let said = vec![thinking("Hm.", FORMAT, unsealed), AssistantPart::Text("Hi".to_owned())];
    let body = body(&Anthropic, &request("", vec![user("Hello"), Message::Assistant(said)]), "");
    assert_eq!(body["messages"][1]["content"].as_array().map(Vec::len), Some(1));
}

/// GitHub Copilot ends its streams so (`huggingface/tau#692`); others leave the end out (`openclaw/openclaw#120030`).
#[test]
fn an_end_marker_may_be_missing_or_another_vendors() {
    let text =
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hi" } });
    let stop = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
    let call = json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "tool_use", "id": "a", "name": "look" } });
    let done = json!("[DONE]");
    for events in [&[text.clone(), stop.clone(), done.clone()][..], &[text.clone(), done.clone()]] {
        assert_eq!(answer(events).unwrap().parts, [AnswerPart::Text("Hi".to_owned())]);
    }
    assert!(matches!(answer(&[call, done.clone()]), Err(Problem::Malformed(_))));
    assert_eq!(answer(&[stop.clone(), done]), Err(Problem::Empty));
    let mut reader = AnthropicReader::default();
    read(&mut reader, std::slice::from_ref(&text)).unwrap();
    assert!(reader.closed().is_none());
    read(&mut reader, &[stop]).unwrap();
    assert!(reader.has_stopped());
    assert_eq!(reader.closed().unwrap().stop, Stop::EndTurn);
}

#[test]
fn a_whole_answer_is_read_like_a_stream() {
    let whole = json!({
        "type": "message",
        "content": [
            { "type": "thinking", "thinking": "Hm.", "signature": "Eq" },
            { "type": "text", "text": "Let me look." },
            { "type": "tool_use", "id": "toolu_7", "name": "look", "input": { "at": 1 } },
        ],
        "stop_reason": "tool_use",
        "usage": { "input_tokens": 5, "output_tokens": 6 },
    });
    let mut steps = Vec::new();
    AnthropicReader::default().whole(&whole, &mut steps).unwrap();
    let Some(Step::Finished(answer)) = steps.pop() else { panic!("{steps:?}") };
    assert_eq!(steps, [Step::Thinking("Hm.".to_owned()), Step::Text("Let me look.".to_owned())]);
    assert_eq!((answer.stop, answer.usage.output_tokens), (Stop::ToolUse, 6));
    let call = AnswerPart::ToolCall {
        name: "look".to_owned(),
        arguments: r#"{"at":1}"#.to_owned(),
        opaque: Some(kept(FORMAT, "toolu_7")),
    };
    assert_eq!(answer.parts[2], call);
    let empty = json!({ "type": "message", "content": [], "stop_reason": "end_turn" });
    assert_eq!(AnthropicReader::default().whole(&empty, &mut steps), Err(Problem::Empty));
}

#[test]
fn arguments_without_end_are_given_up() {
    let event = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "input_json_delta", "partial_json": "x".repeat(1 << 20) } });
    let mut reader = AnthropicReader::default();
    let problem = (0..100).find_map(|_| read(&mut reader, std::slice::from_ref(&event)).err());
    assert_eq!(problem, Some(Problem::Malformed("the arguments of a tool call do not end".to_owned())));
    assert!(reader.size() < 1_200_000);
}
