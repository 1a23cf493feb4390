//! Tests of this format with text alone.

use super::*;
use crate::wire::testing::{body, call, outcome, read, request, thinking, user};

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
    assert_eq!(
        body,
        json!({
            "model": "m-1",
            "max_tokens": 8192,
            "stream": true,
            "system": [{ "type": "text", "text": "Be brief.", "cache_control": cached }],
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Hello" },
                    { "type": "text", "text": "Are you there?" },
                ] },
                { "role": "assistant", "content": [
                    signed,
                    { "type": "tool_use", "id": "tu_1", "name": "look", "input": { "at": "it" } },
                    { "type": "tool_use", "id": "tu_2", "name": "look", "input": {} },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "tu_1" },
                    { "type": "tool_result", "tool_use_id": "tu_2", "content": "gone", "is_error": true },
                    { "type": "text", "text": "Go on", "cache_control": cached },
                ] },
            ],
            "tools": [{ "name": "look", "description": "Looks", "input_schema": { "type": "object" } }],
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
        json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "name": "look", "input": { "at": 1 } } }),
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
            AnswerPart::ToolCall { name, arguments, .. } => {
                call("tu_1", &name, &serde_json::from_str(&arguments).unwrap())
            }
        })
        .collect();
    let body = body(&Anthropic, &request("", vec![user("Hello"), Message::Assistant(back)]), "");
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            { "type": "thinking", "thinking": "Hm.", "signature": "Eq" },
            { "type": "redacted_thinking", "data": "Em" },
            { "type": "tool_use", "id": "tu_1", "name": "look", "input": { "at": 1 }, "cache_control": { "type": "ephemeral" } },
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
