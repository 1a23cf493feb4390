//! The scripted model server says in every format what its script says.

use petasos_core::model::{AnswerPart, Stop, Usage};
use petasos_models::ProviderKind;
use petasos_testkit::model_server::{Gate, ModelServer, Reply};
use serde_json::json;

use crate::support::{call_part, model, quick, request, run, text_part, without_call_data};

const KINDS: [ProviderKind; 3] =
    [ProviderKind::Openai, ProviderKind::OpenaiResponses, ProviderKind::Anthropic];

#[tokio::test]
async fn an_answer_reads_the_same_in_every_format() {
    let usage = Usage { input_tokens: 50, output_tokens: 9, cached_input_tokens: 20, ..Usage::default() };
    for kind in KINDS {
        let server = ModelServer::start().await;
        let calls = [("a", json!({"x": 1})), ("b", json!("not json"))];
        server.script([
            Reply::thinking("Well then").and_text("Two words").and_tool_calls(calls).usage(usage),
            Reply::text("Too long").stop(Stop::MaxTokens),
            Reply::text("No way").stop(Stop::Refusal),
        ]);
        let model = model(kind, &server, quick());
        let first = run(model.as_ref(), request("Hello")).await;
        assert_eq!((first.thinking.as_str(), first.text.as_str()), ("Well then", "Two words"));
        let answer = first.answer();
        let AnswerPart::Thinking { text, opaque: Some(_) } = &answer.parts[0] else { panic!("{answer:?}") };
        assert_eq!(text, "Well then");
        let rest = [text_part("Two words"), call_part("a", r#"{"x":1}"#), call_part("b", "not json")];
        assert_eq!(without_call_data(answer.parts[1..].to_vec()), rest);
        assert_eq!((answer.stop, answer.usage), (Stop::ToolUse, usage));
        for stop in [Stop::MaxTokens, Stop::Refusal] {
            assert_eq!(run(model.as_ref(), request("Hello")).await.answer().stop, stop, "{kind:?}");
        }
        assert_eq!(server.disconnects(), 0);
    }
}

#[tokio::test]
async fn replies_can_depend_on_the_message_and_run_out() {
    let server = ModelServer::start().await;
    server.when("weather", [Reply::text("It rains.")]);
    server.script([Reply::text("First.")]);
    let model = model(ProviderKind::Anthropic, &server, quick());
    for (message, said) in [
        ("Hello", "First."),
        ("How is the weather?", "It rains."),
        ("How is the weather?", "The script of the model server is empty."),
    ] {
        assert_eq!(run(model.as_ref(), request(message)).await.text, said);
    }
}

#[tokio::test]
async fn a_gate_holds_a_reply() {
    let server = ModelServer::start().await;
    let gate = Gate::new();
    server.script([Reply::text("before ").gate(&gate).and_text("after")]);
    let model = model(ProviderKind::OpenaiResponses, &server, quick());
    let running = tokio::spawn(async move { run(model.as_ref(), request("Hello")).await.text });
    gate.reached().await;
    assert!(!running.is_finished());
    gate.open();
    assert_eq!(running.await.unwrap(), "before after");
}
