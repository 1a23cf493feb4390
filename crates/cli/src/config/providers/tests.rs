use secrecy::ExposeSecret;

use super::*;

fn resolved<const N: usize>(file: &str, variables: [(&str, &str); N]) -> Result<Providers> {
    let file: crate::config::file::File = serde_saphyr::from_str(file).unwrap();
    providers(file.providers, &Environment::from(variables))
}

fn key(provider: &ProviderConfig) -> Option<&str> {
    provider.api_key.as_ref().map(|key| key.expose_secret())
}

#[test]
fn the_environment_alone_defines_the_vendors() {
    assert!(resolved("{}", []).unwrap().all.is_empty());
    let found = resolved("{}", [("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")]).unwrap();
    assert_eq!(found.all["openai"].base_url, "http://127.0.0.1:1/v1");
    assert_eq!(key(&found.all["openai"]), None);
    let found = resolved("{}", [("ANTHROPIC_API_KEY", "a\n"), ("OPENAI_API_KEY", "")]).unwrap();
    assert_eq!(found.all.len(), 1);
    assert_eq!(key(&found.all["anthropic"]), Some("a"));
    assert_eq!(found.all["anthropic"].base_url, "https://api.anthropic.com");
}

#[test]
fn the_file_wins_field_by_field() {
    let variables = [("OPENAI_API_KEY", "env"), ("OPENAI_BASE_URL", "http://env/v1")];
    let found = resolved("providers: { openai: { base_url: 'http://file/v1' } }", variables).unwrap();
    assert_eq!(found.all["openai"].base_url, "http://file/v1");
    assert_eq!(key(&found.all["openai"]), Some("env"));
    assert_eq!(found.all["openai"].kind, ProviderKind::Openai);
    let file = "providers: { openai: { kind: openai-responses, api_key: file } }";
    let found = resolved(file, variables).unwrap();
    assert_eq!(found.all["openai"].kind, ProviderKind::OpenaiResponses);
    assert_eq!(found.all["openai"].base_url, "http://env/v1");
    assert_eq!(key(&found.all["openai"]), Some("file"));
}

#[test]
fn a_key_goes_only_where_it_belongs() {
    let variables = [("OPENAI_API_KEY", "env"), ("OTHER", "other")];
    let found = resolved("providers: { openai: { kind: anthropic } }", variables).unwrap();
    assert_eq!(key(&found.all["openai"]), None);
    let file = "providers: { local: { kind: openai, base_url: 'http://l/v1', api_key_env: OTHER } }";
    assert_eq!(key(&resolved(file, variables).unwrap().all["local"]), Some("other"));
    let found = resolved(file, []).unwrap();
    assert_eq!(key(&found.all["local"]), None);
    assert!(found.warnings[0].contains("OTHER"));
}

#[test]
fn mistakes_are_named() {
    let problem = |file| resolved(file, []).err().unwrap().to_string();
    assert!(problem("providers: { x: {} }").contains("providers.x: kind is missing"));
    assert!(problem("providers: { x: { preset: groq, kind: xai } }").contains("groq and xai"));
    assert!(problem("providers: { demo: { kind: openai } }").contains("built in"));
    assert!(problem("providers: { x: { kind: openai, base_url: host } }").contains("http://"));
    assert!(problem("providers: { x: { kind: openai, api_key: a, api_key_env: b } }").contains("not both"));
}

#[test]
fn openai_itself_is_spoken_to_in_responses_unless_a_kind_is_written() {
    let key = [("OPENAI_API_KEY", "k")];
    let kind = |file: &str| resolved(file, key).unwrap().all["openai"].kind;
    assert_eq!(kind("{}"), ProviderKind::OpenaiResponses);
    assert_eq!(
        kind("providers: { openai: { base_url: 'https://eu.api.openai.com/v1' } }"),
        ProviderKind::OpenaiResponses
    );
    assert_eq!(kind("providers: { openai: { kind: openai } }"), ProviderKind::Openai);
    assert_eq!(kind("providers: { openai: { base_url: 'https://proxy.example/v1' } }"), ProviderKind::Openai);
}

#[test]
fn one_variable_is_enough_for_each_preset() {
    for preset in &PRESETS {
        let mut variables: Vec<(&str, &str)> =
            preset.keys.first().map(|key| (*key, "k")).into_iter().collect();
        match (preset.name, preset.host) {
            ("azure", _) => variables.push(("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com/")),
            ("bedrock", _) => variables.push(("AWS_REGION", "eu-central-1")),
            (_, Host::Vendor) => {}
            (_, _) => variables = vec![(preset.urls[0], "http://10.0.0.1:99")],
        }
        let environment = Environment::of(&variables);
        let found = providers(BTreeMap::new(), &environment).unwrap();
        assert!(found.warnings.is_empty() && found.all.len() == 1, "{:?}", found.warnings);
        let config = &found.all[preset.name];
        assert_eq!(config.has_key(), preset.host == Host::Vendor, "{config:?}");
        assert_eq!(config.thinks_in_text, matches!(preset.host, Host::Local(_)));
        match (preset.name, preset.host) {
            ("azure", _) => assert_eq!(config.base_url, "https://mine.openai.azure.com/openai/v1"),
            ("bedrock", _) => {
                assert_eq!(config.base_url, "https://bedrock-runtime.eu-central-1.amazonaws.com/openai/v1");
            }
            (_, Host::Vendor) => assert_eq!(config.base_url, preset.base_url),
            (_, _) => assert_eq!(config.base_url, "http://10.0.0.1:99/v1"),
        }
        // Another address for each, taken as it is.
        variables.push((preset.urls[0], "http://127.0.0.1:1/v1"));
        let found = providers(BTreeMap::new(), &Environment::of(&variables)).unwrap();
        assert_eq!(found.all[preset.name].base_url, "http://127.0.0.1:1/v1");
    }
}

#[test]
fn one_line_is_enough_for_each_preset_under_any_name() {
    let found = resolved(
        "providers: { ollama: {}, fast: { preset: groq }, l: { kind: lmstudio } }",
        [("GROQ_API_KEY", "k")],
    );
    let found = found.unwrap();
    assert_eq!(found.all["ollama"].base_url, "http://127.0.0.1:11434/v1");
    assert!(found.all["ollama"].thinks_in_text && found.all["l"].thinks_in_text);
    assert_eq!(found.all["fast"].base_url, "https://api.groq.com/openai/v1");
    assert_eq!(key(&found.all["fast"]), Some("k"));
    assert_eq!(found.vendors["fast"], "groq");
    let file = "providers: { ollama: { think_tags: false }, vllm: { base_url: 'http://gpu:8000' } }";
    let found = resolved(file, []).unwrap();
    assert!(!found.all["ollama"].thinks_in_text);
    assert_eq!(found.all["vllm"].base_url, "http://gpu:8000/v1");
}

#[test]
fn azure_has_a_header_of_its_own_and_keeps_its_query() {
    let file =
        "providers: { azure: { base_url: 'https://a.example/openai/deployments/d?api-version=2024-10-21' } }";
    let found = resolved(file, [("AZURE_OPENAI_API_KEY", "k")]).unwrap();
    let azure = &found.all["azure"];
    assert_eq!((azure.headers["api-key"].as_str(), key(azure)), ("k", None));
    assert_eq!(azure.url("/x"), "https://a.example/openai/deployments/d/x?api-version=2024-10-21");
    let found = resolved("{}", [("AZURE_OPENAI_API_KEY", "k")]).unwrap();
    assert!(
        found.all.is_empty() && found.warnings[0].contains("AZURE_OPENAI_ENDPOINT"),
        "{:?}",
        found.warnings
    );
    assert!(resolved("providers: { bedrock: {} }", []).is_err());
    assert!(resolved("providers: { bedrock: {} }", [("AWS_REGION", "x.evil.example/")]).is_err());
}

#[test]
fn the_host_of_ollama_may_be_written_as_ollama_takes_it() {
    for (host, url) in [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434/v1"),
        (":5000", "http://127.0.0.1:5000/v1"),
        ("gpu.lan", "http://gpu.lan:11434/v1"),
        ("https://ollama.example", "https://ollama.example/v1"),
        ("http://10.1.1.1:8000/", "http://10.1.1.1:8000/v1"),
    ] {
        assert_eq!(resolved("{}", [("OLLAMA_HOST", host)]).unwrap().all["ollama"].base_url, url, "{host}");
    }
    // A key alone says nothing about a server on this machine, and a region nothing about Bedrock.
    assert!(resolved("{}", [("OLLAMA_API_KEY", "k"), ("AWS_REGION", "eu-west-1")]).unwrap().all.is_empty());
}
