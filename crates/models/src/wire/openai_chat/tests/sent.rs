//! What is sent.

use petasos_core::event::Block;
use petasos_core::model::{AssistantPart, Message, Opaque};
use serde_json::{Value, json};

use super::sent;
use crate::wire::Target;
use crate::wire::openai_chat::{FORMAT, OpenaiChat};
use crate::wire::testing::{body, call, outcome, request, thinking, user};

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
    let calls = &body["messages"][3]["tool_calls"];
    let ids = [&calls[0]["id"], &calls[1]["id"]];
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.as_str().is_some_and(|id| id.len() == 9)), "{ids:?}");
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
                    { "id": ids[0], "type": "function", "function": { "name": "look", "arguments": "{\"at\":\"it\"}" } },
                    { "id": ids[1], "type": "function", "function": { "name": "look", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": ids[0], "content": "fine" },
                { "role": "tool", "tool_call_id": ids[1], "content": "Error: gone" },
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
fn an_assistant_message_without_words_or_calls_is_left_out() {
    let only_thought = Message::Assistant(vec![thinking("Hm.", FORMAT, json!("reasoning"))]);
    let body = body(&OpenaiChat, &request("", vec![user("One"), only_thought, user("Two")]), "");
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(2));
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

#[test]
fn settings_have_their_fields() {
    let mut request = request("", vec![user("Hi")]);
    request.settings = serde_json::from_value(json!({
        "maxOutputTokens": 7, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"], "reasoningEffort": "xhigh",
        "thinkingBudgetTokens": 1000, "seed": -3, "parallelToolCalls": false,
    }))
    .unwrap();
    let (body, left_out) = sent(&request, &Target::default());
    for (field, value) in [
        ("max_tokens", json!(7)),
        ("temperature", json!(0.5)),
        ("top_p", json!(0.9)),
        ("stop", json!(["END"])),
        ("reasoning_effort", json!("xhigh")),
        ("seed", json!(-3)),
        ("parallel_tool_calls", json!(false)),
    ] {
        assert_eq!(body[field], value, "{field}");
    }
    assert_eq!(left_out, ["thinkingBudgetTokens"]);

    let drops = &["stream_options", "seed", "max_tokens"];
    let (body, left_out) = sent(&request, &Target { drops, ..Target::default() });
    assert_eq!(left_out, ["seed", "thinkingBudgetTokens"]);
    assert_eq!(body["max_completion_tokens"], 7, "the other name is tried");
    assert!(["stream_options", "seed", "max_tokens"].iter().all(|field| body.get(field).is_none()));

    request.tools.clear();
    let (body, left_out) = sent(&request, &Target::default());
    assert!(body.get("parallel_tool_calls").is_none());
    assert_eq!(left_out, ["thinkingBudgetTokens"]);
}

#[test]
fn only_openais_own_address_gets_the_new_name_of_the_limit() {
    let mut request = request("", vec![user("Hi")]);
    request.settings.max_output_tokens = Some(7);
    for (base_url, field) in [
        ("https://api.openai.com/v1/", "max_completion_tokens"),
        ("https://api.openai.com:443/v1", "max_completion_tokens"),
        ("https://mine.example/api.openai.com/v1", "max_tokens"),
        ("https://api.openai.com.example/v1", "max_tokens"),
    ] {
        assert_eq!(body(&OpenaiChat, &request, base_url)[field], 7, "{base_url}");
    }
}

#[test]
fn extra_body_replaces_top_level_fields() {
    let mut request = request("Be brief.", vec![user("Hi")]);
    request.settings = serde_json::from_value(json!({ "temperature": 0.5, "extraBody": {
        "temperature": 1, "tool_choice": "required", "stream_options": null, "tools": [], "messages": [{ "role": "user" }],
    } }))
    .unwrap();
    let json = crate::wire::WireFormat::body(&OpenaiChat, &request, &Target::default()).json;
    for field in ["temperature", "tools", "messages", "stream_options"] {
        assert_eq!(json.matches(&format!("\"{field}\":")).count(), 1, "{json}");
    }
    let body: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        body,
        json!({
            "model": "m-1", "stream": true, "temperature": 1, "tool_choice": "required", "stream_options": null,
            "tools": [], "messages": [{ "role": "user" }],
        })
    );
}

/// A conversation of two turns, each with a call and an answer, whose reasoning came under this name.
fn two_turns(field: &str) -> Vec<Message> {
    let think = || thinking("Hm.", FORMAT, json!(field));
    let turn = |id: &str| {
        [
            user("Go"),
            Message::Assistant(vec![
                think(),
                thinking("Signed.", "anthropic", json!({})),
                call(id, "look", &json!({})),
            ]),
            Message::ToolResults(vec![outcome(id, "fine", false)]),
            Message::Assistant(vec![think(), AssistantPart::Text("Done.".to_owned())]),
        ]
    };
    [turn("tu_1"), turn("tu_2")].concat()
}

#[test]
fn reasoning_goes_back_with_calls_in_all_later_requests() {
    for field in ["reasoning_content", "reasoning"] {
        let body = body(&OpenaiChat, &request("", two_turns(field)), "");
        for (index, reasoning) in [(1, Some("Hm.")), (3, None), (5, Some("Hm.")), (7, None)] {
            let message = &body["messages"][index];
            assert_eq!(message.get(field).and_then(Value::as_str), reasoning, "{message}");
            let names = ["reasoning_content", "reasoning"].iter().filter(|name| message.get(name).is_some());
            assert_eq!(
                names.count(),
                usize::from(reasoning.is_some()),
                "the other name is refused: {message}"
            );
        }
        assert_eq!(body["messages"][1]["content"], Value::Null);
    }
}

/// The models that refuse a request without it: continuedev/continue#11711 (Kimi), openclaw/openclaw#73417 (DeepSeek),
/// janhq/jan#8136 (Groq, which refuses one with it).
#[test]
fn vendors_that_insist_on_reasoning_get_an_empty_one_where_there_is_none() {
    let without = vec![
        user("Go"),
        Message::Assistant(vec![call("tu_1", "look", &json!({}))]),
        Message::ToolResults(vec![outcome("tu_1", "fine", false)]),
        Message::Assistant(vec![AssistantPart::Text("Done.".to_owned())]),
    ];
    for (model, base_url, expected) in [
        ("deepseek-v4-pro", "https://api.deepseek.com", [true, true]),
        ("deepseek/DeepSeek-V4-Flash", "https://openrouter.ai/api/v1", [true, true]),
        ("kimi-k2.6", "https://api.moonshot.ai/v1", [true, false]),
        ("moonshotai/kimi-k2-instruct", "https://api.groq.com/openai/v1", [false, false]),
        ("gpt-5", "https://api.openai.com/v1", [false, false]),
    ] {
        let mut request = request("", without.clone());
        request.model = model.to_owned();
        let body = body(&OpenaiChat, &request, base_url);
        let has = [1, 3].map(|index| body["messages"][index].get("reasoning_content").is_some());
        assert_eq!(has, expected, "{model}");
    }
    let mut request = request("", two_turns("reasoning_content"));
    request.model = "deepseek-v4-flash".to_owned();
    let body = body(&OpenaiChat, &request, "");
    let thoughts = [1, 3, 5, 7].map(|index| body["messages"][index]["reasoning_content"].clone());
    assert_eq!(thoughts, ["Hm.", "Hm.", "Hm.", "Hm."]);
}

#[test]
fn fields_that_a_vendor_wants_back_are_sent_unchanged() {
    let details = json!([{ "type": "reasoning.encrypted", "data": "abc", "index": 0 }]);
    let signature = json!({ "google": { "thought_signature": "xyz" } });
    let call = AssistantPart::ToolCall {
        id: "tu_1".to_owned(),
        name: "look".to_owned(),
        input: serde_json::Map::new(),
        opaque: Some(Opaque {
            format: FORMAT.to_owned(),
            provider: None,
            data: json!({ "id": "call_9", "extra_content": signature, "function": { "note": 1, "name": "other" } }),
        }),
    };
    let attached = json!({ "field": "reasoning", "reasoning_details": details, "extra_content": signature });
    let history = vec![
        user("Go"),
        Message::Assistant(vec![thinking("Hm.", FORMAT, attached), call]),
        Message::ToolResults(vec![outcome("tu_1", "fine", false)]),
    ];
    let body = body(&OpenaiChat, &request("", history), "");
    assert_eq!(
        body["messages"][1],
        json!({
            "role": "assistant",
            "content": null,
            "reasoning": "Hm.",
            "reasoning_details": details,
            "extra_content": signature,
            "tool_calls": [{
                "id": "call_9",
                "type": "function",
                "extra_content": signature,
                "function": { "name": "look", "arguments": "{}", "note": 1 },
            }],
        })
    );
    assert_eq!(body["messages"][2]["tool_call_id"], "call_9");
}

#[test]
fn claude_over_openrouter_is_told_what_to_cache() {
    let mut request = request("Be brief.", two_turns("reasoning")[..3].to_vec());
    request.model = "anthropic/claude-sonnet-4.5".to_owned();
    let marked = body(&OpenaiChat, &request, "https://openrouter.ai/api/v1");
    let mark = json!({ "type": "ephemeral" });
    let system = json!([{ "type": "text", "text": "Be brief.", "cache_control": mark }]);
    assert_eq!(marked["messages"][0]["content"], system);
    assert_eq!(marked["messages"][1]["content"], json!([{ "type": "text", "text": "Go" }]));
    assert_eq!(marked["messages"][3]["content"][0]["cache_control"], mark);
    assert_eq!(marked.to_string().matches("cache_control").count(), 2);
    for (model, base_url) in [
        ("openai/gpt-5", "https://openrouter.ai/api/v1"),
        ("anthropic/claude-sonnet-4.5", "https://litellm.example/v1"),
    ] {
        request.model = model.to_owned();
        assert!(!body(&OpenaiChat, &request, base_url).to_string().contains("cache_control"));
    }
}
