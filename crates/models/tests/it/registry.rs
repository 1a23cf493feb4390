//! Names, keys and headers.

use std::collections::BTreeMap;

use petasos_models::{Error, Models, ProviderConfig, ProviderKind, Settings};
use petasos_testkit::model_server::{ModelServer, Reply};

use crate::support::{KEY, client, models, quick, request, run};

fn error_of(models: &Models, name: &str) -> Error {
    match models.resolve(name) {
        Ok((_, model)) => panic!("{name} was found as {model}"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn names_are_split_at_the_first_slash() {
    let server = ModelServer::start().await;
    let models = models(ProviderKind::Openai, &server, quick());
    assert_eq!(models.resolve("test/meta/llama-4").unwrap().1, "meta/llama-4");
    assert_eq!(models.resolve("demo/echo").unwrap().1, "echo");
    for name in ["gpt-4", "/gpt-4", "test/", ""] {
        let error = error_of(&models, name);
        assert!(error.message.contains("provider/model"), "{error}");
    }
}

#[test]
fn an_unknown_provider_is_told_with_the_known_ones() {
    let config = ProviderConfig::new(ProviderKind::Anthropic, Some(KEY.into()));
    let models = Models::new(BTreeMap::from([("claude".to_owned(), config)]), Settings::default(), client());
    let error = error_of(&models, "opanai/gpt-4");
    assert_eq!(error.code, Error::UNKNOWN_PROVIDER);
    for part in ["\"opanai\"", "claude, demo", "providers:", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"] {
        assert!(error.message.contains(part), "{part} is missing in: {error}");
    }
}

#[test]
fn a_vendor_needs_a_key_and_a_local_server_does_not() {
    let vendor = ProviderConfig::new(ProviderKind::Openai, None);
    let mut local = vendor.clone();
    local.base_url = "http://127.0.0.1:11434/v1".to_owned();
    let providers = BTreeMap::from([("openai".to_owned(), vendor), ("local".to_owned(), local)]);
    let models = Models::new(providers, Settings::default(), client());
    let error = error_of(&models, "openai/gpt-4");
    assert_eq!(error.code, Error::MISSING_KEY);
    assert!(error.message.contains("OPENAI_API_KEY"), "{error}");
    assert!(models.resolve("local/llama").is_ok());
}

#[tokio::test]
async fn each_kind_sends_its_path_and_headers() {
    for (kind, path, header, value) in [
        (ProviderKind::Openai, "/v1/chat/completions", "authorization", format!("Bearer {KEY}")),
        (ProviderKind::OpenaiResponses, "/v1/responses", "authorization", format!("Bearer {KEY}")),
        (ProviderKind::Anthropic, "/v1/messages", "x-api-key", KEY.to_owned()),
    ] {
        let server = ModelServer::start().await;
        server.script([Reply::text("Hi")]);
        let (model, _) = models(kind, &server, quick()).resolve("test/m-1").unwrap();
        run(model.as_ref(), request("Hello")).await.answer();
        let sent = server.requests().remove(0);
        assert_eq!(sent.path, path);
        assert_eq!(sent.headers.get(header), Some(&value));
        assert_eq!(sent.headers["x-team"], "hats");
        assert_eq!(sent.headers["accept"], "text/event-stream");
        assert!(sent.headers["user-agent"].starts_with("petasos/"));
        assert_eq!(sent.headers.contains_key("anthropic-version"), kind == ProviderKind::Anthropic);
        assert_eq!(sent.last_user_text(), "Hello");
        assert_eq!(sent.body["stream"], true);
    }
}

#[test]
fn what_a_model_takes_is_known_of_each_model_by_itself() {
    use petasos_models::{Catalog, ModelFacts};

    let mut blind = ProviderConfig::new(ProviderKind::Openai, None);
    blind.base_url = "http://127.0.0.1:1/v1".to_owned();
    let local = blind.clone();
    blind.images = false;
    let providers = BTreeMap::from([("blind".to_owned(), blind), ("local".to_owned(), local)]);
    let sees = ModelFacts { images: Some(true), ..ModelFacts::default() };
    let catalog = Catalog { models: [("blind/eye*".to_owned(), sees)].into(), ..Catalog::default() };
    let models = Models::new(providers, Settings::default(), client()).with_catalog(catalog);
    for (model, images, files) in [
        ("local/llama3.3:70b", false, false),
        ("local/qwen3-vl-8b", true, false),
        ("local/whatever", true, false),
        ("local/claude-opus-4-5", true, true),
        ("blind/claude-opus-4-5", false, true),
        ("blind/eye-2", true, false),
        ("demo/fast", false, false),
        ("nobody/claude-opus-4-5", false, false),
    ] {
        assert_eq!((models.takes_images(model), models.takes_files(model)), (images, files), "{model}");
    }
}

#[test]
fn a_vendor_without_a_key_names_its_own_variable() {
    let mut config = ProviderConfig::new(ProviderKind::Openai, None);
    config.base_url = "https://api.deepseek.com/v1".to_owned();
    let providers = BTreeMap::from([("mine".to_owned(), config)]);
    let models = Models::new(providers, Settings::default(), client());
    let error = error_of(&models, "mine/deepseek-chat");
    assert_eq!(error.code, Error::MISSING_KEY);
    assert!(error.message.contains("Set DEEPSEEK_API_KEY, or api_key under providers.mine"), "{error}");
    assert!(error_of(&models, "groq/x").message.contains("Set GROQ_API_KEY"));
    assert!(error_of(&models, "ollama/x").message.contains("Add `ollama: {}`"));
    assert_eq!(models.provider_kinds(), [("demo", "demo"), ("mine", "openai")]);
}
