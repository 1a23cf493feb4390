//! Vendors that speak chat completions, each of which refuses what the real one refuses, in its own words.
//!
//! The threads in which the refusals were reported stand beside them.

use petasos_core::event::Block;
use petasos_core::model::{Answer, AnswerPart, AssistantPart, Message, Opaque, Request, Stop, ToolOutcome};
use petasos_models::{Error, ProviderKind};
use petasos_testkit::model_server::{ModelServer, RecordedRequest, Reply};
use serde_json::{Map, Value, json};

use crate::support::{model, quick, request, run, text_part};

/// A stream of these chunks, with or without its end.
fn stream(chunks: &[Value], is_marked: bool) -> Reply {
    let mut bytes: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    if is_marked {
        bytes.push_str("data: [DONE]\n\n");
    }
    Reply::raw(bytes, "text/event-stream")
}

fn chunk(delta: Value, reason: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] })
}

/// A call of `get_weather` with this id, and with these fields more on the call and on the message.
fn calling(id: &str, call_fields: &Value, message_fields: &Value) -> Reply {
    let mut call = json!({
        "index": 0, "id": id, "type": "function",
        "function": { "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" },
    });
    call.as_object_mut().unwrap().extend(call_fields.as_object().unwrap().clone());
    let mut delta = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    delta.as_object_mut().unwrap().extend(message_fields.as_object().unwrap().clone());
    stream(&[chunk(delta, Value::Null), chunk(json!({}), json!("tool_calls"))], true)
}

/// What was said so far, as the engine keeps it: with ids of its own.
fn said(answer: Answer, own: &str) -> Vec<Message> {
    let (mut parts, mut outcomes) = (Vec::new(), Vec::new());
    for part in answer.parts {
        parts.push(match part {
            AnswerPart::Thinking { text, opaque } => AssistantPart::Thinking { text, opaque },
            AnswerPart::Text(text) => AssistantPart::Text(text),
            AnswerPart::ToolCall { name, arguments, opaque } => {
                let id = format!("{own}_{}", outcomes.len());
                let (text, images) = ("mild".to_owned(), Vec::new());
                let (name_of, id_of) = (name.clone(), id.clone());
                outcomes.push(ToolOutcome { id: id_of, name: name_of, text, images, is_error: false });
                let input = serde_json::from_str(&arguments).unwrap();
                AssistantPart::ToolCall { id, name, input, opaque }
            }
        });
    }
    let results = (!outcomes.is_empty()).then_some(Message::ToolResults(outcomes));
    std::iter::once(Message::Assistant(parts)).chain(results).collect()
}

fn user(text: &str) -> Message {
    Message::User(vec![Block::text(text)])
}

/// Three turns with a tool each, with a vendor that calls it when asked and refuses as `refusal` says. Returns what is
/// sent in the end.
async fn three_turns(
    model_name: &str,
    history: Vec<Message>,
    refusal: fn(&RecordedRequest) -> Option<String>,
    call: fn(usize) -> Reply,
) -> Request {
    let server = ModelServer::start().await;
    server.respond(move |request| {
        let messages = request.body["messages"].as_array().unwrap();
        match refusal(request) {
            Some(message) => Reply::status(400).message(&message),
            None if messages.last().unwrap()["role"] == "user" => call(messages.len()),
            None => stream(
                &[chunk(json!({ "content": "Mild.", "reasoning_content": "So." }), json!("stop"))],
                true,
            ),
        }
    });
    let model = model(ProviderKind::Openai, &server, quick());
    let mut request = request("unused");
    request.model = model_name.to_owned();
    request.messages = history;
    for turn in 0..3 {
        request.messages.push(user(&format!("Turn {turn}")));
        for _ in 0..2 {
            let answer = run(model.as_ref(), request.clone()).await.answer();
            request.messages.extend(said(answer, &format!("tu_{}", request.messages.len())));
        }
    }
    request
}

/// A call that another provider made, under an id of ours as MCP calls have it.
fn foreign() -> Vec<Message> {
    let id = "mcptoolu_01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    let opaque = Some(Opaque {
        format: "openai-chat".to_owned(),
        provider: Some("another".to_owned()),
        data: json!({ "id": "call_PTLP8xhu3uwZk4l3nlnrrJha", "extra_content": { "secret": true } }),
    });
    let name = "get_weather".to_owned();
    vec![
        user("Before"),
        Message::Assistant(vec![AssistantPart::ToolCall {
            id: id.clone(),
            name: name.clone(),
            input: Map::new(),
            opaque,
        }]),
        Message::ToolResults(vec![ToolOutcome {
            id,
            name,
            text: "ok".to_owned(),
            images: vec![],
            is_error: false,
        }]),
    ]
}

fn assistant_messages(request: &RecordedRequest) -> Vec<(usize, Value)> {
    let messages = request.body["messages"].as_array().unwrap().iter().cloned().enumerate();
    messages.filter(|(_, message)| message["role"] == "assistant").collect()
}

/// anomalyco/opencode#1680, nearai/ironclaw#1241, langchain-ai/langchain#24668.
#[tokio::test]
async fn mistral_takes_ids_of_nine_letters_and_digits() {
    let refusal = |request: &RecordedRequest| {
        let body = &request.body;
        let messages = body["messages"].as_array().unwrap();
        let calls = messages.iter().filter_map(|message| message["tool_calls"].as_array()).flatten();
        let mut ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        let results = messages.iter().filter_map(|message| message["tool_call_id"].as_str());
        assert_eq!(results.collect::<Vec<_>>(), ids, "each result names its call");
        let misfit = ids.iter().find(|id| id.len() != 9 || !id.bytes().all(|b| b.is_ascii_alphanumeric()));
        if let Some(id) = misfit {
            return Some(format!("Tool call id was {id} but must be a-z, A-Z, 0-9, with a length of 9."));
        }
        ids.sort_unstable();
        ids.windows(2)
            .any(|two| two[0] == two[1])
            .then(|| "Duplicate tool call id in assistant message".to_owned())
    };
    // The vendor's own ids, which it repeats.
    let request = three_turns("mistral-large-latest", foreign(), refusal, |length| {
        calling(if length < 6 { "D681PevKs" } else { "Yy0xR3oPq" }, &json!({}), &json!({}))
    })
    .await;
    let Message::Assistant(parts) = &request.messages[4] else { panic!("{request:?}") };
    let AssistantPart::ToolCall { opaque: Some(opaque), .. } = &parts[0] else { panic!("{parts:?}") };
    assert_eq!((opaque.provider.as_deref(), &opaque.data), (Some("test"), &json!({ "id": "D681PevKs" })));
}

/// anomalyco/opencode#16318, continuedev/continue#11711, QuantumNous/new-api#3121.
#[tokio::test]
async fn kimi_wants_the_reasoning_of_earlier_calls_back() {
    let refusal = |request: &RecordedRequest| {
        let mut calling = assistant_messages(request).into_iter();
        calling.find(|(_, message)| message["tool_calls"].is_array() && message["reasoning_content"].is_null()).map(
            |(index, _)| {
                format!(
                    "thinking is enabled but reasoning_content is missing in assistant tool call message at index {index}"
                )
            },
        )
    };
    three_turns("kimi-k2.5", foreign(), refusal, |_| {
        calling("get_weather:0", &json!({}), &json!({ "reasoning_content": "Let me look." }))
    })
    .await;
}

/// openclaw/openclaw#73417, MoonshotAI/kimi-cli#2141, JohnnyZ93/oai-compatible-copilot#215.
#[tokio::test]
async fn deepseek_v4_wants_the_reasoning_of_all_messages_back() {
    let refusal = |request: &RecordedRequest| {
        let mut messages = assistant_messages(request).into_iter().map(|(_, message)| message);
        messages.any(|message| !message["reasoning_content"].is_string()).then(|| {
            "The `reasoning_content` in the thinking mode must be passed back to the API.".to_owned()
        })
    };
    three_turns("deepseek-v4-pro", foreign(), refusal, |_| {
        calling("call_00_9nLfpIQ6", &json!({}), &json!({ "reasoning_content": "Let me look." }))
    })
    .await;
}

/// janhq/jan#8136, NousResearch/hermes-agent#11089.
#[tokio::test]
async fn groq_gets_reasoning_back_under_the_name_that_it_used() {
    let refusal = |request: &RecordedRequest| {
        let messages = assistant_messages(request);
        let wrong = messages.iter().find(|(_, message)| message.get("reasoning_content").is_some());
        assert!(messages.iter().all(|(_, message)| {
            message["tool_calls"].is_null()
                || message["tool_calls"][0]["id"] != "fc_1"
                || message["reasoning"] == "Hm."
        }));
        wrong.map(|(index, _)| {
            format!(
                "'messages.{index}' : for 'role:assistant' the following must be satisfied[('messages.{index}' : \
                 property 'reasoning_content' is unsupported)]"
            )
        })
    };
    three_turns("openai/gpt-oss-120b", foreign(), refusal, |_| {
        calling("fc_1", &json!({}), &json!({ "reasoning": "Hm." }))
    })
    .await;
}

/// labring/aiproxy#450, nanbingxyz/5ire#405, lbjlaq/Antigravity-Manager#938.
#[tokio::test]
async fn gemini_wants_its_thought_signatures_back() {
    let refusal = |request: &RecordedRequest| {
        let messages = assistant_messages(request);
        let calls = messages.iter().filter_map(|(_, message)| message["tool_calls"].as_array()).flatten();
        let mut own = calls.filter(|call| call["id"].as_str().unwrap().starts_with("function-call-"));
        own.any(|call| call["extra_content"]["google"]["thought_signature"] != "EjQKMgFy").then(|| {
            "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
             correctly, and missing thought_signature may lead to degraded model performance. Additional data, \
             function call `default_api:get_weather` , position 2."
                .to_owned()
        })
    };
    three_turns("gemini-3-flash-preview", Vec::new(), refusal, |length| {
        let signature = json!({ "extra_content": { "google": { "thought_signature": "EjQKMgFy" } } });
        calling(&format!("function-call-{length}"), &signature, &json!({}))
    })
    .await;
}

/// agno-agi/agno#8794, NousResearch/hermes-agent#96782.
#[tokio::test]
async fn openrouter_gets_its_reasoning_details_back_in_whole_blocks() {
    let refusal = |request: &RecordedRequest| {
        let messages = assistant_messages(request);
        let mut calling = messages.iter().filter(|(_, message)| message["tool_calls"].is_array());
        let block = json!([{
            "type": "reasoning.text", "text": "Let me look.", "format": "anthropic-claude-v1", "index": 0,
            "signature": "Et8BCmUI",
        }]);
        calling
            .any(|(_, message)| message["reasoning_details"] != block)
            .then(|| "messages.1.content.0: Invalid `signature` in `thinking` block".to_owned())
    };
    three_turns("anthropic/claude-sonnet-4.5", Vec::new(), refusal, |_| {
        let detail = |detail: Value| chunk(json!({ "reasoning_details": [detail] }), Value::Null);
        let text = |text: &str| {
            json!({ "type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0 })
        };
        let call = json!({
            "index": 0, "id": "toolu_1", "function": { "name": "get_weather", "arguments": "{}" },
        });
        let signature = json!({
            "type": "reasoning.text", "signature": "Et8BCmUI", "format": "anthropic-claude-v1", "index": 0,
        });
        let chunks = [
            chunk(json!({ "reasoning": "Let me look." }), Value::Null),
            detail(text("Let me")),
            detail(text(" look.")),
            detail(signature),
            chunk(json!({ "tool_calls": [call] }), json!("tool_calls")),
        ];
        stream(&chunks, true)
    })
    .await;
}

#[tokio::test]
async fn an_empty_answer_is_tried_again_and_then_an_error() {
    let empty = || stream(&[chunk(json!({ "content": "" }), json!("stop"))], true);
    let server = ModelServer::start().await;
    server.script([empty(), Reply::text("Here.")]);
    let model = model(ProviderKind::Openai, &server, quick());
    let outcome = run(model.as_ref(), request("Hello")).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[false][..], "Here."));
    server.script([0; 3].map(|_| empty()));
    let error = run(model.as_ref(), request("Hello")).await.error();
    assert_eq!(error.code, Error::BAD_RESPONSE);
    assert!(error.message.contains("the answer is empty"), "{error}");
}

#[tokio::test]
async fn a_server_that_never_says_why_it_stops_is_believed_in_the_end() {
    let silent = |is_marked| stream(&[chunk(json!({ "content": "All of it." }), Value::Null)], is_marked);
    let server = ModelServer::start().await;
    server.script([silent(true), silent(false), silent(false), silent(false)]);
    let model = model(ProviderKind::Openai, &server, quick());
    // The end marker is enough.
    let outcome = run(model.as_ref(), request("Hello")).await;
    assert_eq!((outcome.resets.len(), outcome.answer().stop), (0, Stop::EndTurn));
    // Without it the answer may have been cut, which only more attempts can tell.
    let outcome = run(model.as_ref(), request("Hello")).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[true, true][..], "All of it."));
    assert_eq!(outcome.answer().parts, [text_part("All of it.")]);
}

#[tokio::test]
async fn a_model_is_told_nothing_of_names_and_arguments_that_a_server_wrapped() {
    let call = json!({
        "index": 0, "id": "1",
        "function": { "name": "functions.get_weather", "arguments": "\"{\\\"city\\\":\\\"Paris\\\"}\"" },
    });
    let server = ModelServer::start().await;
    server.script([stream(&[chunk(json!({ "tool_calls": [call] }), json!("tool_calls"))], true)]);
    let answer = run(model(ProviderKind::Openai, &server, quick()).as_ref(), request("Hello")).await.answer();
    let AnswerPart::ToolCall { name, arguments, .. } = &answer.parts[0] else { panic!("{answer:?}") };
    assert_eq!((name.as_str(), arguments.as_str()), ("get_weather", r#"{"city":"Paris"}"#));
}

#[tokio::test]
async fn settings_without_a_field_are_named_in_the_answer() {
    let server = ModelServer::start().await;
    server.script([Reply::text("Hi.")]);
    let mut request = request("Hello");
    request.settings.thinking_budget_tokens = Some(1000);
    request.settings.seed = Some(7);
    let answer = run(model(ProviderKind::Openai, &server, quick()).as_ref(), request).await.answer();
    assert_eq!(answer.left_out, ["thinkingBudgetTokens"]);
    assert_eq!(server.requests()[0].body["seed"], 7);
}
