//! What every wire format must do, on recorded streams.
//!
//! A stream is a file `fixtures/<kind>/<scenario>.sse`. A new format needs its own files and one line in the
//! macro call below, and must then pass everything.

use std::time::Duration;

use futures_util::StreamExt;
use petasos_core::model::{AnswerPart, Stop, Usage};
use petasos_models::{Delta, Error, ProviderKind, Settings};
use petasos_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::support::{Outcome, call_part, model, quick, request, run, text_part, without_call_data};

macro_rules! contract {
    ($($format:ident: $kind:expr,)*) => {
        contract!(@each [$($format: $kind,)*] [
            text reasoning_and_text parallel_tool_calls refusal length_stop
            early_close_is_retried cut_connection_is_retried error_mid_stream_is_retried
            rate_limit_is_waited_for bad_key_is_not_retried stall_is_retried stall_in_a_tool_call_is_retried silence_is_retried
            html_is_not_retried garbage_is_an_error last_error_counts_attempts
            too_much_output_is_an_error dropping_the_stream_ends_the_request nothing_listens time_limit
        ]);
    };
    (@each [$($format:ident: $kind:expr,)*] $scenarios:tt) => {
        $(contract!(@format $format $kind, $scenarios);)*
    };
    (@format $format:ident $kind:expr, [$($scenario:ident)*]) => {
        mod $format {
            use petasos_models::ProviderKind;
            $(
                #[tokio::test]
                async fn $scenario() {
                    super::$scenario($kind).await;
                }
            )*
        }
    };
}

contract! {
    openai: ProviderKind::Openai,
    openai_responses: ProviderKind::OpenaiResponses,
    anthropic: ProviderKind::Anthropic,
}

fn fixture(kind: ProviderKind, scenario: &str) -> Reply {
    let folder = match kind {
        ProviderKind::Openai => "openai",
        ProviderKind::OpenaiResponses => "openai-responses",
        ProviderKind::Anthropic => "anthropic",
    };
    let path = format!("{}/tests/fixtures/{folder}/{scenario}.sse", env!("CARGO_MANIFEST_DIR"));
    Reply::raw(std::fs::read(&path).expect(&path), "text/event-stream; charset=utf-8")
}

/// Plays replies to one call and reads it to the end.
async fn play(kind: ProviderKind, settings: Settings, replies: impl IntoIterator<Item = Reply>) -> Outcome {
    let server = ModelServer::start().await;
    server.script(replies);
    run(model(kind, &server, settings).as_ref(), request("Hello")).await
}

/// Plays a recorded stream in one piece, and cut at places that no vendor would choose.
async fn recorded(kind: ProviderKind, scenario: &str) -> Outcome {
    let whole = play(kind, quick(), [fixture(kind, scenario)]).await;
    for size in [7, 64] {
        let cut = play(kind, quick(), [fixture(kind, scenario).in_chunks_of(size)]).await;
        assert_eq!(cut.answer, whole.answer, "in chunks of {size}");
        assert_eq!((&cut.text, &cut.thinking), (&whole.text, &whole.thinking), "in chunks of {size}");
    }
    whole
}

fn usage(input_tokens: u64, output_tokens: u64, cached_input_tokens: u64) -> Usage {
    Usage { input_tokens, output_tokens, cached_input_tokens, ..Usage::default() }
}

async fn text(kind: ProviderKind) {
    let outcome = recorded(kind, "text").await;
    assert_eq!(outcome.text, "Grüße from Olympus 🏛");
    let answer = outcome.answer();
    assert_eq!(answer.parts, [text_part("Grüße from Olympus 🏛")]);
    // Only this vendor says what it wrote to its cache.
    let cache_write_tokens = if kind == ProviderKind::Anthropic { 150 } else { 0 };
    assert_eq!(answer.usage, Usage { cache_write_tokens, ..usage(1200, 7, 1024) });
    assert_eq!(answer.stop, Stop::EndTurn);
}

async fn reasoning_and_text(kind: ProviderKind) {
    let outcome = recorded(kind, "reasoning").await;
    assert_eq!((outcome.thinking.as_str(), outcome.text.as_str()), ("Six times seven.", "It is 42."));
    let answer = outcome.answer();
    assert_eq!((answer.stop, answer.usage), (Stop::EndTurn, usage(20, 11, 0)));
    assert_eq!(answer.parts.last(), Some(&text_part("It is 42.")));
    let AnswerPart::Thinking { text, opaque: Some(_) } = &answer.parts[0] else { panic!("{answer:?}") };
    assert_eq!(text, "Six times seven.");
}

async fn parallel_tool_calls(kind: ProviderKind) {
    let answer = recorded(kind, "tool_calls").await.answer();
    let expected = [
        text_part("Let me look."),
        call_part("get_weather", r#"{"city":"Paris"}"#),
        call_part("get_time", r#"{"zone":"CET"}"#),
    ];
    assert_eq!(without_call_data(answer.parts.clone()), expected);
    assert_eq!((answer.stop, answer.usage), (Stop::ToolUse, usage(90, 33, 0)));
}

async fn refusal(kind: ProviderKind) {
    let answer = recorded(kind, "refusal").await.answer();
    assert_eq!(answer.parts, [text_part("I can't help with that.")]);
    assert_eq!((answer.stop, answer.usage), (Stop::Refusal, usage(15, 6, 0)));
}

async fn length_stop(kind: ProviderKind) {
    let answer = recorded(kind, "length").await.answer();
    assert_eq!(answer.parts, [text_part("Once upon a")]);
    assert_eq!((answer.stop, answer.usage), (Stop::MaxTokens, usage(15, 4, 0)));
}

async fn early_close_is_retried(kind: ProviderKind) {
    // Before the first text, and after it.
    let early = [1, 5].map(|chunks| Reply::text("one two three four").end_after_chunks(chunks));
    let outcome = play(kind, quick(), early.into_iter().chain([fixture(kind, "text")])).await;
    assert_eq!(outcome.resets, [false, true]);
    assert_eq!(outcome.text, "Grüße from Olympus 🏛");
    assert_eq!(outcome.answer().stop, Stop::EndTurn);
}

async fn cut_connection_is_retried(kind: ProviderKind) {
    let cut = Reply::text("one two three four").cut_after_chunks(5);
    let outcome = play(kind, quick(), [cut, fixture(kind, "text")]).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[true][..], "Grüße from Olympus 🏛"));
}

async fn error_mid_stream_is_retried(kind: ProviderKind) {
    let outcome = play(kind, quick(), [fixture(kind, "error_mid_stream"), fixture(kind, "text")]).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[true][..], "Grüße from Olympus 🏛"));
    let always = [0; 3].map(|_| fixture(kind, "error_mid_stream"));
    let error = play(kind, quick(), always).await.error();
    assert_eq!(error.code, Error::OVERLOADED, "{error}");
}

async fn rate_limit_is_waited_for(kind: ProviderKind) {
    let mut settings = quick();
    // Only the provider's own wish can make this fast enough.
    settings.retry.base_delay = Duration::from_secs(3600);
    settings.retry.max_delay = Duration::from_secs(3600);
    settings.retry.max_total = Duration::from_secs(7200);
    let limited = Reply::status(429).header("retry-after", "0");
    let outcome = play(kind, settings, [limited, fixture(kind, "text")]).await;
    assert_eq!(outcome.resets, [false]);
    assert_eq!(outcome.answer().stop, Stop::EndTurn);
}

async fn bad_key_is_not_retried(kind: ProviderKind) {
    let server = ModelServer::start().await;
    server.script([Reply::status(401).message("the key key-for-tests is not known here")]);
    let error = run(model(kind, &server, quick()).as_ref(), request("Hello")).await.error();
    assert_eq!(error.code, Error::UNAUTHORIZED);
    assert!(error.message.contains("the key [redacted] is not known here"), "{error}");
    assert!(error.message.contains("_API_KEY"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

async fn stall_is_retried(kind: ProviderKind) {
    let settings = Settings { stall_timeout: Duration::from_millis(500), ..quick() };
    let stalled = Reply::text("one two three four").stall_after_chunks(5);
    let server = ModelServer::start().await;
    server.script([stalled, fixture(kind, "text")]);
    let outcome = run(model(kind, &server, settings).as_ref(), request("Hello")).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[true][..], "Grüße from Olympus 🏛"));
    server.wait_for_disconnects(1).await;
}

async fn stall_in_a_tool_call_is_retried(kind: ProviderKind) {
    let settings = Settings { stall_timeout: Duration::from_millis(500), ..quick() };
    let stalled = Reply::tool_call("get_time", json!({ "zone": "CET" })).stall_after_chunks(4);
    let outcome = play(kind, settings, [stalled, fixture(kind, "text")]).await;
    assert_eq!((outcome.resets.as_slice(), outcome.text.as_str()), (&[false][..], "Grüße from Olympus 🏛"));
}

async fn silence_is_retried(kind: ProviderKind) {
    let settings = Settings { first_byte_timeout: Duration::from_millis(200), ..quick() };
    let silent = [0; 3].map(|_| Reply::text("never").stall_after_chunks(0));
    let error = play(kind, settings, silent).await.error();
    assert_eq!(error.code, Error::TIMEOUT);
    assert!(error.message.contains("for 200ms"), "{error}");
}

async fn html_is_not_retried(kind: ProviderKind) {
    let server = ModelServer::start().await;
    server.script([
        Reply::raw("<html><body>Please log in</body></html>", "text/html"),
        Reply::raw(r#"{"error":{"message":"no such thing"}}"#, "application/json"),
    ]);
    let model = model(kind, &server, quick());
    let error = run(model.as_ref(), request("Hello")).await.error();
    assert_eq!(error.code, Error::BAD_RESPONSE);
    assert!(error.message.contains("got text/html: an HTML page"), "{error}");
    let error = run(model.as_ref(), request("Hello")).await.error();
    assert!(error.message.contains("application/json: no such thing"), "{error}");
    assert_eq!(server.requests().len(), 2);
}

async fn garbage_is_an_error(kind: ProviderKind) {
    let garbage: [&[u8]; 3] =
        [b"data: {\"half\": \n\n", b"data: \xff\xfe\n\n", b"this is not an event stream at all\n\n"];
    let outcome = play(kind, quick(), garbage.map(|bytes| Reply::raw(bytes, "text/event-stream"))).await;
    assert_eq!(outcome.resets, [false, false]);
    assert_eq!(outcome.error().code, Error::UNREACHABLE);
    let error =
        play(kind, quick(), [0; 3].map(|_| Reply::raw(garbage[0], "text/event-stream"))).await.error();
    assert_eq!(error.code, Error::BAD_RESPONSE, "{error}");
}

async fn last_error_counts_attempts(kind: ProviderKind) {
    let error = play(kind, quick(), [0; 3].map(|_| Reply::status(529))).await.error();
    assert_eq!(error.code, Error::OVERLOADED);
    assert!(error.message.contains("status 529: scripted status 529"), "{error}");
    assert!(error.message.ends_with("(after 3 attempts)"), "{error}");
}

async fn too_much_output_is_an_error(kind: ProviderKind) {
    let settings = Settings { max_output_chars: 40, ..quick() };
    let error = play(kind, settings, [Reply::text("twelve chars ".repeat(10))]).await.error();
    assert_eq!(error.code, Error::OUTPUT_TOO_LARGE);
}

async fn dropping_the_stream_ends_the_request(kind: ProviderKind) {
    let server = ModelServer::start().await;
    server.script([
        Reply::text("one two three four").stall_after_chunks(5),
        Reply::empty().stall_after_chunks(0),
    ]);
    let model = model(kind, &server, quick());
    let mut stream = model.stream(request("Hello"));
    assert!(matches!(stream.next().await, Some(Ok(Delta::Text(_)))));
    drop(stream);
    server.wait_for_disconnects(1).await;

    // The same before anything came.
    let mut stream = model.stream(request("Hello"));
    tokio::select! {
        delta = stream.next() => panic!("{delta:?}"),
        () = server.wait_for_requests(2) => {}
    }
    drop(stream);
    server.wait_for_disconnects(2).await;
}

async fn nothing_listens(kind: ProviderKind) {
    let server = ModelServer::start().await;
    let model = model(kind, &server, quick());
    drop(server);
    // The listener is closed by a task, which has to run once.
    tokio::task::yield_now().await;
    let error = run(model.as_ref(), request("Hello")).await.error();
    assert_eq!(error.code, Error::UNREACHABLE, "{error}");
    assert!(error.message.contains("could not connect to 127.0.0.1"), "{error}");
}

async fn time_limit(kind: ProviderKind) {
    // Retries would go on for much longer.
    let mut settings = Settings { time_limit: Duration::from_millis(100), ..quick() };
    settings.retry.base_delay = Duration::from_secs(10);
    settings.retry.max_delay = Duration::from_secs(10);
    let error = play(kind, settings, [Reply::status(500)]).await.error();
    assert_eq!(error.code, Error::TIMEOUT);
    assert!(error.message.contains("longer than 100ms"), "{error}");
}
