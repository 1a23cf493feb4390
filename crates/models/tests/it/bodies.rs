//! What comes with status 200: streams under any name, whole answers, errors, pages, and bodies that never end.

use std::time::Duration;

use petasos_core::model::{AnswerPart, AssistantPart, Message, Stop};
use petasos_models::{Error, ProviderKind, Settings};
use petasos_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::support::{Outcome, model, quick, request, run, text_part};

const KINDS: [ProviderKind; 2] = [ProviderKind::OpenaiResponses, ProviderKind::Anthropic];

fn fixture(kind: ProviderKind, scenario: &str) -> String {
    let folder = if kind == ProviderKind::Anthropic { "anthropic" } else { "openai-responses" };
    let path = format!("{}/tests/fixtures/{folder}/{scenario}.sse", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

/// A whole answer that says `Hi`.
fn whole(kind: ProviderKind) -> serde_json::Value {
    if kind == ProviderKind::Anthropic {
        return json!({ "type": "message", "content": [{ "type": "text", "text": "Hi" }], "stop_reason": "end_turn" });
    }
    let message = json!({ "type": "message", "content": [{ "type": "output_text", "text": "Hi" }] });
    json!({ "object": "response", "status": "completed", "error": null, "output": [message] })
}

async fn play(kind: ProviderKind, settings: Settings, replies: Vec<Reply>) -> (Outcome, usize) {
    let server = ModelServer::start().await;
    server.script(replies);
    let outcome = run(model(kind, &server, settings).as_ref(), request("Hello")).await;
    (outcome, server.requests().len())
}

fn once() -> Settings {
    let mut settings = quick();
    settings.retry.max_attempts = 1;
    settings
}

/// `mnfst/llm-gateway#2716`: streams that are called something else.
#[tokio::test]
async fn a_stream_is_known_by_its_bytes() {
    for kind in KINDS {
        let stream = fixture(kind, "text");
        let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
        let lines: String = data.map(|data| format!("{data}\n")).collect();
        for (content_type, body) in [
            ("text/plain", stream.clone()),
            ("application/octet-stream", stream.clone()),
            ("application/json", format!(": ping\n\n{stream}")),
            ("application/x-ndjson", lines.clone()),
            ("text/event-stream", lines),
        ] {
            for size in [5, 100_000] {
                let reply = Reply::raw(body.clone(), content_type).in_chunks_of(size);
                let (outcome, _) = play(kind, once(), vec![reply]).await;
                assert_eq!(outcome.text, "Grüße from Olympus 🏛", "{kind:?} {content_type}");
                assert_eq!(outcome.answer().stop, Stop::EndTurn);
            }
        }
    }
}

#[tokio::test]
async fn a_whole_answer_is_read_where_a_stream_was_asked_for() {
    for kind in KINDS {
        let pretty = serde_json::to_string_pretty(&whole(kind)).unwrap();
        for body in [whole(kind).to_string(), format!("{}\n", whole(kind)), pretty] {
            for content_type in ["application/json", "text/event-stream"] {
                let reply = Reply::raw(body.clone(), content_type).in_chunks_of(9);
                let (outcome, requests) = play(kind, quick(), vec![reply]).await;
                assert_eq!((outcome.text.as_str(), requests), ("Hi", 1));
                assert_eq!(outcome.answer().parts, [text_part("Hi")]);
            }
        }
        // The length that the provider names is never reached.
        let lie = Reply::raw(whole(kind).to_string(), "application/json").cut_after_chunks(1);
        assert_eq!(play(kind, once(), vec![lie]).await.0.text, "Hi");
    }
}

#[tokio::test]
async fn an_error_with_status_200_is_sorted_by_its_code() {
    for kind in KINDS {
        for (body, code, is_retried) in [
            (json!({ "error": { "code": 429, "message": "Slow down" } }), Error::RATE_LIMITED, true),
            (json!({ "error": { "type": "overloaded_error", "message": "Busy" } }), Error::OVERLOADED, true),
            (json!([{ "error": { "code": 503, "message": "Busy" } }]), Error::OVERLOADED, true),
            (json!({ "error": { "code": "invalid_api_key", "message": "No" } }), Error::UNAUTHORIZED, false),
            (json!({ "error": { "code": 400, "message": "No" } }), Error::BAD_REQUEST, false),
            (json!({ "error": { "message": "No" } }), Error::BAD_RESPONSE, false),
            (json!({ "detail": "Not Found" }), Error::BAD_RESPONSE, false),
        ] {
            let reply = Reply::raw(body.to_string(), "application/json");
            let (outcome, requests) = play(kind, quick(), vec![reply; 3]).await;
            let error = outcome.error();
            assert_eq!((error.code, requests), (code, if is_retried { 3 } else { 1 }), "{body}: {error}");
        }
        for (title, code, requests) in [
            ("503 Service Temporarily Unavailable", Error::OVERLOADED, 3),
            ("Please log in", Error::BAD_RESPONSE, 1),
        ] {
            let page = format!("<html><head><title>{title}</title></head></html>");
            let (outcome, found) = play(kind, quick(), vec![Reply::raw(page, "text/html"); 3]).await;
            let error = outcome.error();
            assert_eq!((error.code, found), (code, requests), "{title}: {error}");
            assert!(error.message.contains("got text/html: an HTML page"), "{error}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_is_tried_again() {
    for kind in KINDS {
        let (outcome, requests) = play(kind, quick(), vec![Reply::empty(), Reply::text("Hi")]).await;
        assert_eq!((outcome.text.as_str(), requests), ("Hi", 2));
        let error = play(kind, quick(), vec![Reply::empty(); 3]).await.0.error();
        assert_eq!((error.code, error.began), (Error::BAD_RESPONSE, false), "{error}");
        assert!(error.message.contains("the answer is empty"), "{error}");
    }
}

#[tokio::test]
async fn an_error_says_whether_the_answer_had_begun() {
    for kind in KINDS {
        let call = || Reply::tool_call("get_time", json!({ "zone": "CET" }));
        for (reply, began) in [
            (Reply::status(500), false),
            (Reply::text("one two three four").end_after_chunks(1), false),
            (Reply::text("one two three four").cut_after_chunks(5), true),
            (call().end_after_chunks(4), true),
        ] {
            let error = play(kind, once(), vec![reply]).await.0.error();
            assert_eq!(error.began, began, "{kind:?}: {error}");
        }
    }
}

/// `tombii/better-ccflare#307`: all is said, and only pings follow.
#[tokio::test]
async fn a_lost_connection_after_the_stop_reason_costs_nothing() {
    let stream = fixture(ProviderKind::Anthropic, "text");
    let end = stream.find("event: message_stop").unwrap();
    for reply in [Reply::raw(stream[..end].to_owned(), "text/event-stream").cut_after_chunks(1)] {
        let (outcome, _) = play(ProviderKind::Anthropic, once(), vec![reply]).await;
        assert_eq!(outcome.answer().stop, Stop::EndTurn);
    }
    let settings = Settings { stall_timeout: Duration::from_millis(100), ..once() };
    let stalled = Reply::raw(stream[..end].to_owned(), "text/event-stream").stall_after_chunks(1);
    let (outcome, _) = play(ProviderKind::Anthropic, settings, vec![stalled]).await;
    assert_eq!(outcome.answer().stop, Stop::EndTurn);
}

#[tokio::test]
async fn bodies_without_end_are_given_up() {
    let noise = "x".repeat(70_000_000);
    for kind in KINDS {
        let stream = fixture(kind, "tool_calls");
        let begun = &stream[..stream.rfind("event: ").unwrap()];
        for (body, content_type) in [
            // One event, one JSON text, and one page that never end.
            (format!("data: {noise}"), "text/event-stream"),
            (format!("{{\"a\": \"{noise}"), "application/json"),
            (format!("<html>{noise}"), "text/html"),
            (format!("{begun}data: {noise}"), "text/event-stream"),
        ] {
            let reply = Reply::raw(body, content_type).in_chunks_of(1 << 20).stall_after_chunks(60);
            let (outcome, _) = play(kind, once(), vec![reply]).await;
            assert_eq!(outcome.error().code, Error::BAD_RESPONSE, "{kind:?} {content_type}");
        }
    }
}

#[tokio::test]
async fn streams_closed_anywhere_over_http_end_in_an_answer_or_an_error() {
    for kind in KINDS {
        for scenario in ["reasoning", "tool_calls"] {
            let bytes = fixture(kind, scenario).into_bytes();
            let server = ModelServer::start().await;
            let model = model(kind, &server, once());
            for cut in (0..bytes.len()).step_by(97) {
                let size = 1 + (cut * 7919) % 300;
                server.script([Reply::raw(bytes[..cut].to_vec(), "text/event-stream").in_chunks_of(size)]);
                // `run` insists on an answer or an error.
                run(model.as_ref(), request("Hello")).await;
            }
        }
    }
}

#[tokio::test]
async fn what_a_provider_attaches_goes_back_to_it_alone() {
    for kind in KINDS {
        let server = ModelServer::start().await;
        server.script([
            Reply::thinking("Well then").and_tool_call("get_time", json!({})),
            Reply::text("Hi"),
            Reply::text("Hi"),
        ]);
        let model = model(kind, &server, quick());
        let answer = run(model.as_ref(), request("Hello")).await.answer();
        let mut parts = Vec::new();
        for part in answer.parts {
            parts.push(match part {
                AnswerPart::Thinking { text, opaque } => {
                    assert_eq!(opaque.as_ref().unwrap().provider.as_deref(), Some("test"));
                    AssistantPart::Thinking { text, opaque }
                }
                AnswerPart::Text(text) => AssistantPart::Text(text),
                AnswerPart::ToolCall { name, opaque, .. } => {
                    assert_eq!(opaque.as_ref().unwrap().provider.as_deref(), Some("test"));
                    let id = "tu_1".to_owned();
                    AssistantPart::ToolCall { id, name, input: serde_json::Map::new(), opaque }
                }
            });
        }
        let mut foreign = parts.clone();
        for part in &mut foreign {
            if let AssistantPart::Thinking { opaque: Some(opaque), .. }
            | AssistantPart::ToolCall { opaque: Some(opaque), .. } = part
            {
                opaque.provider = Some("other".to_owned());
            }
        }
        for parts in [parts, foreign] {
            let mut request = request("Hello");
            request.messages.push(Message::Assistant(parts));
            run(model.as_ref(), request).await.answer();
        }
        let [own, foreign] = [1, 2].map(|index| server.requests()[index].body.to_string());
        let kept = |body: &str| body.contains("signature") || body.contains("\"encrypted_content\":");
        assert!(kept(&own) && !kept(&foreign), "{kind:?}: {own} {foreign}");
    }
}
