//! Presets of vendors, `petasos models`, and a running server that lacks a key.

use std::io::{Read, Write};
use std::net::TcpListener;

use petasos_testkit::model_server::{ModelServer, Reply};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::installation::Installation;

/// A model server that runs beside the test.
struct Vendor {
    server: ModelServer,
    _runtime: Runtime,
}

impl Vendor {
    fn start() -> Vendor {
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(ModelServer::start());
        Vendor { server, _runtime: runtime }
    }

    /// Answers all that `petasos models test` asks.
    fn works(&self) {
        let called = Reply::tool_call("report_result", json!({ "ok": true }));
        self.server.script([Reply::text("Hello."), called, Reply::text("Red")]);
    }
}

const CHAT: &str = "/v1/chat/completions";

/// The name of each preset, the variables of its address and its key, and where requests then go.
const PRESETS: [(&str, &str, &str, &str); 16] = [
    ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", CHAT),
    ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "/v1/messages"),
    ("gemini", "GEMINI_BASE_URL", "GOOGLE_API_KEY", CHAT),
    ("openrouter", "OPENROUTER_BASE_URL", "OPENROUTER_API_KEY", CHAT),
    ("groq", "GROQ_BASE_URL", "GROQ_API_KEY", CHAT),
    ("mistral", "MISTRAL_BASE_URL", "MISTRAL_API_KEY", CHAT),
    ("deepseek", "DEEPSEEK_BASE_URL", "DEEPSEEK_API_KEY", CHAT),
    ("moonshot", "MOONSHOT_BASE_URL", "MOONSHOT_API_KEY", CHAT),
    ("xai", "XAI_BASE_URL", "XAI_API_KEY", CHAT),
    ("azure", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", CHAT),
    ("bedrock", "BEDROCK_BASE_URL", "AWS_BEARER_TOKEN_BEDROCK", CHAT),
    ("ollama", "OLLAMA_HOST", "OLLAMA_API_KEY", CHAT),
    ("vllm", "VLLM_BASE_URL", "VLLM_API_KEY", CHAT),
    ("llamacpp", "LLAMACPP_BASE_URL", "LLAMACPP_API_KEY", CHAT),
    ("lmstudio", "LM_STUDIO_BASE_URL", "LM_STUDIO_API_KEY", CHAT),
    ("litellm", "LITELLM_BASE_URL", "LITELLM_API_KEY", CHAT),
];

#[test]
fn each_preset_works_with_its_variables_alone() {
    for (name, address, key, path) in PRESETS {
        let vendor = Vendor::start();
        vendor.works();
        let base_url = match name {
            "anthropic" | "ollama" => vendor.server.anthropic_base_url(),
            _ => vendor.server.openai_base_url(),
        };
        let installation = Installation::new().with_env(address, base_url).with_env(key, "key-of-vendor");
        let tried = installation.json(&["models", "test", &format!("{name}/some-model")]);
        let checks = tried["checks"].as_array().unwrap();
        assert!(checks.len() == 3 && checks.iter().all(|check| check["status"] == "ok"), "{name}: {tried}");
        let requests = vendor.server.requests();
        assert_eq!(requests.len(), 3, "{name}");
        let (header, value) = match name {
            "anthropic" => ("x-api-key", "key-of-vendor"),
            "azure" => ("api-key", "key-of-vendor"),
            _ => ("authorization", "Bearer key-of-vendor"),
        };
        for request in &requests {
            assert_eq!(request.path, path, "{name}");
            assert_eq!(request.headers.get(header).map(String::as_str), Some(value), "{name}");
            assert_eq!(request.body["model"], "some-model");
        }
        assert!(requests[1].body["tools"].is_array(), "{name}");
        assert!(requests[2].body.to_string().contains("iVBORw0KGgo"), "{name}");
    }
}

#[test]
fn a_query_in_the_base_url_comes_after_the_path() {
    let vendor = Vendor::start();
    vendor.works();
    let installation = Installation::new();
    let base_url = format!("{}?api-version=2024-10-21", vendor.server.openai_base_url());
    installation
        .write("config.yaml", format!("providers: {{ azure: {{ base_url: '{base_url}', api_key: k }} }}"));
    assert!(installation.run(&["models", "test", "azure/gpt-4o"]).success);
    assert_eq!(vendor.server.requests()[0].path, CHAT);
}

#[test]
fn a_model_that_does_not_work_is_told_with_the_cause() {
    let vendor = Vendor::start();
    let installation = Installation::new()
        .with_env("GROQ_BASE_URL", vendor.server.openai_base_url())
        .with_env("GROQ_API_KEY", "key-of-vendor");
    vendor.server.script([Reply::status(401).message("Bad key key-of-vendor")]);
    let tried = installation.run(&["models", "test", "groq/x"]);
    assert_eq!(tried.code, Some(1), "{tried:?}");
    assert!(tried.stdout.contains("failed") && tried.stdout.contains("GROQ_API_KEY"), "{tried:?}");
    assert!(!tried.stdout.contains("key-of-vendor"), "{tried:?}");

    vendor.server.script([Reply::text("Hello."), Reply::text("I would rather not."), Reply::text("Red")]);
    let tried = installation.run(&["models", "test", "groq/x"]);
    assert_eq!(tried.code, Some(1), "{tried:?}");
    assert!(tried.stdout.contains("failed   tool call: it answered without calling the tool"), "{tried:?}");
    assert!(tried.stdout.contains("ok       picture: Red"), "{tried:?}");

    let none = installation.run(&["models", "test"]);
    none.assert_refused(&["there is no model to try", "default_model"]);
    let unknown = installation.run(&["models", "test", "deepseek/x"]);
    assert!(unknown.code == Some(1) && unknown.stdout.contains("Set DEEPSEEK_API_KEY"), "{unknown:?}");
    let demo = installation.run(&["models", "test", "demo/fast"]);
    assert!(demo.success && demo.stdout.contains("skipped  picture"), "{demo:?}");
}

#[test]
fn providers_are_listed_without_their_keys() {
    let installation = Installation::new().with_env("ANTHROPIC_API_KEY", "very-secret");
    let config = "providers:
  ollama: {}
  mine: { kind: openai, base_url: 'https://user:hidden@models.example/v1?key=hidden' }
catalog:
  mine/big: { context_window: 1000000, images: true, prices: { input: 1, output: 2 } }
";
    installation.write("config.yaml", config);
    let listed = installation.json(&["models", "list"]);
    let row = |name: &str| {
        let rows = listed["data"].as_array().unwrap();
        rows.iter().find(|row| row["provider"] == name).unwrap().clone()
    };
    let claude = row("anthropic");
    assert_eq!(claude["keySet"], true);
    assert_eq!(
        (&claude["kind"], &claude["baseUrl"]),
        (&json!("anthropic"), &json!("https://api.anthropic.com"))
    );
    let sonnet = claude["models"].as_array().unwrap().iter();
    let sonnet = sonnet.clone().find(|model| model["name"] == "anthropic/claude-sonnet-4-5*").unwrap();
    assert_eq!((&sonnet["contextWindow"], &sonnet["maxOutputTokens"]), (&json!(200_000), &json!(64_000)));
    assert_eq!((&sonnet["images"], &sonnet["prices"]["output"]), (&json!(true), &json!(15.0)));
    assert_eq!(
        (&row("ollama")["keySet"], &row("ollama")["baseUrl"]),
        (&json!(false), &json!("http://127.0.0.1:11434/v1"))
    );
    assert_eq!(row("mine")["baseUrl"], "https://models.example/v1");
    assert_eq!(row("mine")["models"][0]["name"], "mine/big");
    let table = installation.run(&["models", "list"]).stdout;
    assert!(table.contains("PROVIDER") && table.contains("anthropic/claude-sonnet-4-5*"), "{table}");
    assert!(!format!("{listed}{table}").contains("hidden") && !table.contains("very-secret"), "{table}");
}

#[test]
fn known_models_cost_what_their_vendor_asks_and_budgets_count_it() {
    let vendor = Vendor::start();
    vendor.server.script([Reply::text("One."), Reply::text("Two.")]);
    let installation = Installation::new().with_env("OPENAI_BASE_URL", vendor.server.openai_base_url());
    installation.write("config.yaml", "limits: { session_cost: 0.00001 }\n");
    let done = installation.json(&["run", "--model", "openai/gpt-4.1", "Hello"]);
    // 10 tokens at 2 and 5 at 8 for a million.
    assert_eq!(done["usage"]["cost"], json!(0.00006), "{done}");
    let over = installation.run(&["run", "--session", done["sessionId"].as_str().unwrap(), "More"]);
    assert!(over.code == Some(2) && over.stderr.contains("session_cost_exceeded"), "{over:?}");
    let other = installation.json(&["run", "--model", "openai/my-own", "Hello"]);
    assert!(other["usage"]["cost"].is_null(), "{other}");
}

#[test]
fn a_running_server_that_lacks_the_key_is_told_apart_from_this_shell() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let about = server.request("GET", "/v1/server", &key, "").1;
    assert_eq!(about["providers"], json!([{ "name": "demo", "kind": "demo" }]), "{about}");

    let installation =
        installation.with_env("GROQ_API_KEY", "k").with_env("GROQ_BASE_URL", "http://127.0.0.1:9/v1");
    let failed = installation.run(&["run", "--model", "groq/x", "Hello"]);
    let told = format!(
        "the running server at {} has no key for groq; set GROQ_API_KEY in its environment and restart it",
        server.url
    );
    assert!(failed.code == Some(2) && failed.stderr.contains(&told), "{failed:?}");
    let doctor = installation.run(&["doctor"]).stdout;
    assert!(doctor.contains("warn  running server, provider groq: this shell has it"), "{doctor}");
    assert!(doctor.contains("set GROQ_API_KEY in the server's environment and restart it"), "{doctor}");
    server.stop();
    let server = installation.serve();
    let about = server.request("GET", "/v1/server", &key, "").1;
    assert_eq!(about["providers"][1], json!({ "name": "groq", "kind": "openai" }), "{about}");
    let doctor = installation.run(&["doctor"]).stdout;
    assert!(!doctor.contains("running server, provider"), "{doctor}");
}

/// A server that lists a model at one of these ports, whichever is free on this machine.
fn local_server() -> Option<(&'static str, u16)> {
    let ports =
        [("lmstudio", 1234), ("ollama", 11434), ("litellm", 4000), ("vllm", 8000), ("llamacpp", 8080)];
    let (name, port, listener) = ports
        .into_iter()
        .find_map(|(name, port)| Some((name, port, TcpListener::bind(("127.0.0.1", port)).ok()?)))?;
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let body = r#"{"object":"list","data":[{"id":"tiny","object":"model"}]}"#;
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close", body.len());
            let _ = write!(stream, "{head}\r\n\r\n{body}");
        }
    });
    Some((name, port))
}

#[test]
fn doctor_finds_local_model_servers_and_prints_the_line_to_add() {
    let Some((name, port)) = local_server() else {
        eprintln!("SKIPPED: all of the ports are taken");
        return;
    };
    let installation = Installation::new();
    let doctor = installation.run(&["doctor"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let found = format!("ok    local models at port {port}: ");
    assert!(doctor.stdout.contains(&found) && doctor.stdout.contains(&format!("{name}/tiny")), "{doctor:?}");
    let line = format!("providers: {{ {name}: {{}} }}");
    assert!(doctor.stdout.contains(&line), "{doctor:?}");
    installation.write("config.yaml", line);
    let doctor = installation.run(&["doctor"]);
    assert!(!doctor.stdout.contains(&found), "{doctor:?}");
    assert!(doctor.stdout.contains(&format!("ok    provider {name}: ")), "{doctor:?}");
}
