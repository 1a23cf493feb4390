//! Providers that refuse a field: the request is made again without it, at once, and the field is remembered.
//!
//! Each endpoint answers in the words of the public thread that is named beside it.

use petasos_core::model::{Answer, AssistantPart, Message, Opaque, Request};
use petasos_core::model_settings::ModelSettings;
use petasos_models::{Error, Models, ProviderKind};
use petasos_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::{Outcome, models, quick, request, run};

async fn ask(models: &Models, name: &str, settings: &Value) -> Outcome {
    let (model, name) = models.resolve(name).unwrap();
    let settings: ModelSettings = serde_json::from_value(settings.clone()).unwrap();
    run(model.as_ref(), Request { model: name, settings, ..request("Hello") }).await
}

/// A server that refuses requests with this field, a path, in these words.
async fn refusing(path: &'static str, words: &'static str) -> ModelServer {
    let server = ModelServer::start().await;
    server.respond(move |request| match request.body.pointer(path) {
        Some(_) => Reply::refusal(400, words),
        None => Reply::text("Hi"),
    });
    server
}

async fn asked(models: &Models, name: &str, settings: &Value) -> Answer {
    let outcome = ask(models, name, settings).await;
    assert!(outcome.resets.is_empty(), "a refused field cost an attempt: {outcome:?}");
    outcome.answer()
}

#[tokio::test]
async fn fields_that_are_refused_by_name_are_left_out_and_told() {
    let (anthropic, responses) = (ProviderKind::Anthropic, ProviderKind::OpenaiResponses);
    for (thread, kind, path, words, settings, left_out) in [
        (
            "danielmiessler/Fabric#1678",
            responses,
            "/temperature",
            r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":null}}"#,
            json!({ "temperature": 0.7 }),
            &["temperature"][..],
        ),
        (
            "OpenHands/software-agent-sdk#987",
            responses,
            "/reasoning/summary",
            r#"{"error":{"message":"Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, it can take up to 15 minutes for access to propagate.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}"#,
            json!({ "reasoningEffort": "low" }),
            &[],
        ),
        (
            "NousResearch/hermes-agent#24234",
            responses,
            "/include",
            r#"{"error":{"message":"Encrypted content is not supported with this model","type":"invalid_request_error","param":"include","code":null}}"#,
            json!({}),
            &[],
        ),
        (
            "evalstate/fast-agent#279",
            responses,
            "/parallel_tool_calls",
            r#"{"error":{"message":"Unsupported parameter: 'parallel_tool_calls' is not supported with this model.","type":"invalid_request_error","param":"parallel_tool_calls","code":"unsupported_parameter"}}"#,
            json!({ "parallelToolCalls": false }),
            &["parallelToolCalls"],
        ),
        (
            "maximhq/bifrost#5934",
            anthropic,
            "/thinking/budget_tokens",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."}}"#,
            json!({ "thinkingBudgetTokens": 4_000, "reasoningEffort": "high" }),
            &["thinkingBudgetTokens"],
        ),
        (
            "Oaklight/llm-rosetta#289",
            anthropic,
            "/output_config",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support the effort parameter."}}"#,
            json!({ "reasoningEffort": "high" }),
            &["reasoningEffort"],
        ),
        (
            "mnfst/modelparams.dev#214",
            anthropic,
            "/temperature",
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at https://platform.claude.com/docs/en/build-with-claude/extended-thinking"}}"#,
            json!({ "temperature": 0.05 }),
            &["temperature"],
        ),
    ] {
        let server = refusing(path, words).await;
        let models = models(kind, &server, quick());
        assert_eq!(asked(&models, "test/m-1", &settings).await.left_out, left_out, "{thread}");
    }
}

#[tokio::test]
async fn a_refused_field_is_not_sent_again() {
    let server = ModelServer::start().await;
    let refusal = || {
        Reply::refusal(
            400,
            r#"{"error":{"message":"Unsupported parameter: 'temperature' is not supported with this model.","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}"#,
        )
    };
    server.script([refusal(), Reply::text("Hi"), Reply::text("Hi"), Reply::text("Hi")]);
    let models = models(ProviderKind::OpenaiResponses, &server, quick());
    let settings = json!({ "temperature": 0.5, "topP": 0.5 });
    for (name, left_out) in
        [("test/m-1", &["temperature"][..]), ("test/m-1", &["temperature"]), ("test/m-2", &[])]
    {
        assert_eq!(asked(&models, name, &settings).await.left_out, left_out, "{name}");
    }
    let has_it: Vec<bool> =
        server.requests().iter().map(|request| request.body.get("temperature").is_some()).collect();
    // It is this model that refuses the field: another one is asked with it.
    assert_eq!(has_it, [true, false, false, true]);
    assert!(server.requests().iter().all(|request| request.body["top_p"] == 0.5));
}

#[tokio::test]
async fn what_is_no_refusal_is_an_error_at_once() {
    for words in [
        r#"{"error":{"message":"temperature: range: 0..1","type":"invalid_request_error"}}"#,
        r#"{"error":{"message":"Unsupported parameter: 'top_k' is not supported","param":"top_k"}}"#,
        "not JSON at all",
    ] {
        let server = ModelServer::start().await;
        server.script([Reply::refusal(400, words)]);
        let models = models(ProviderKind::Anthropic, &server, quick());
        let settings = json!({ "temperature": 2, "extraBody": { "top_k": 5 } });
        let error = ask(&models, "test/m-1", &settings).await.error();
        assert_eq!((error.code, server.requests().len()), (Error::BAD_REQUEST, 1), "{error}");
    }
}

#[tokio::test]
async fn a_provider_that_refuses_everything_is_not_asked_for_ever() {
    let server = ModelServer::start().await;
    let words = r#"{"error":{"message":"unknown fields 'temperature', 'top_p', 'include', 'reasoning', 'store', 'seed'"}}"#;
    server.script((0..30).map(|_| Reply::refusal(400, words)));
    let models = models(ProviderKind::OpenaiResponses, &server, quick());
    let settings = json!({ "temperature": 1, "topP": 1, "seed": 1 });
    let error = ask(&models, "test/m-1", &settings).await.error();
    assert_eq!((error.code, server.requests().len()), (Error::BAD_REQUEST, 6), "{error}");
}

/// `openai/codex#8119` and `can1357/oh-my-pi#6046`: a session must not end for ever because its reasoning cannot be read.
#[tokio::test]
async fn reasoning_that_a_vendor_cannot_read_is_left_out_of_this_call() {
    for (kind, format, data, words) in [
        (
            ProviderKind::OpenaiResponses,
            "openai-responses",
            json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" }),
            r#"{"error":{"message":"The encrypted content gAAA...c90= could not be verified.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}"#,
        ),
        (
            ProviderKind::Anthropic,
            "anthropic",
            json!({ "type": "thinking", "thinking": "Hm.", "signature": "gAAA" }),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid `signature` in `thinking` block"}}"#,
        ),
    ] {
        let server = ModelServer::start().await;
        server.script([Reply::refusal(400, words), Reply::text("Hi"), Reply::text("Hi")]);
        let opaque = Some(Opaque { format: format.to_owned(), provider: Some("test".to_owned()), data });
        let thought = AssistantPart::Thinking { text: "Hm.".to_owned(), opaque };
        let said = Message::Assistant(vec![thought, AssistantPart::Text("Well.".to_owned())]);
        let mut again = request("Hello");
        again.messages.extend([said, request("And?").messages.remove(0)]);
        let models = models(kind, &server, quick());
        for _ in 0..2 {
            let (model, _) = models.resolve("test/m-1").unwrap();
            assert!(run(model.as_ref(), again.clone()).await.resets.is_empty());
        }
        let has_it: Vec<bool> =
            server.requests().iter().map(|request| request.body.to_string().contains("gAAA")).collect();
        assert_eq!(has_it, [true, false, true], "{kind:?}");
    }
}
