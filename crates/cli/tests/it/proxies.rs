//! The way out through a company's proxy, from outside.

use std::process::Output;
use std::time::Instant;

use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Authority, ModelServer, ProxyMood, ProxyServer, Reply, within};
use serde_json::{Value, json};

use crate::installation::{Finished, Installation, PATIENCE};

/// Runs a command while the servers of a test answer.
async fn run(installation: &Installation, arguments: &[&str]) -> Finished {
    let mut command = installation.command(arguments);
    let output = tokio::task::spawn_blocking(move || -> Output { command.output().unwrap() });
    Finished::from(within("the end of a command", output).await.unwrap())
}

/// The host and port of a URL.
fn place(url: &str) -> &str {
    url.strip_prefix("http://").unwrap().split('/').next().unwrap()
}

/// A provider `far`, which is only reached through a proxy.
fn config(base_url: &str, more: Value) -> String {
    let mut config = json!({
        "providers": { "far": { "kind": "openai", "base_url": base_url, "api_key": "sk-1" } },
        "models": { "max_attempts": 1, "connect_seconds": 5, "first_byte_seconds": 2 },
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config.to_string()
}

/// All that commands have left in the home, for words that must not be there.
fn kept(installation: &Installation) -> Vec<u8> {
    let files = std::fs::read_dir(installation.home()).unwrap().map(|file| file.unwrap().path());
    files
        .filter(|file| !file.ends_with("config.yaml"))
        .flat_map(|file| std::fs::read(file).unwrap_or_default())
        .collect()
}

fn has(text: &[u8], word: &str) -> bool {
    text.windows(word.len()).any(|window| window == word.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_behind_a_proxy_that_opens_tls_answers() {
    let (model, authority) = (ModelServer::start().await, Authority::new());
    let base_url = model.openai_base_url();
    let front = authority.identity("models.example").front(place(&base_url)).await;
    let proxy = ProxyServer::start(&front, ProxyMood::Demands("ann", "pass:word")).await;
    let installation = Installation::new();
    let ca = installation.write("company.pem", authority.pem());
    installation.write("config.yaml", config("https://models.example/v1", json!({})));
    let installation = installation
        .with_env("https_proxy", proxy.url_with("ann", "pass%3Aword"))
        .with_env("SSL_CERT_FILE", ca.display().to_string())
        .with_env("PETASOS_LOG", "trace");
    model.script([Reply::text("From far away.")]);
    let said = run(&installation, &["run", "--model", "far/m", "Hello"]).await;
    assert!(said.success && said.stdout.contains("From far away."), "{said:?}");
    assert_eq!(proxy.lines()[0], "CONNECT models.example:443");
    let doctor = run(&installation, &["doctor"]).await;
    assert!(doctor.stdout.contains(&format!("https:// by {}", proxy.url())), "{doctor:?}");
    let kept = kept(&installation);
    for secret in ["pass%3Aword", "pass:word", "YW5uOnBhc3M6d29yZA"] {
        assert!(!said.stderr.contains(secret) && !doctor.stdout.contains(secret), "{said:?} {doctor:?}");
        assert!(!has(&kept, secret), "{secret} was written down");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_names_a_proxy_and_certificates_too() {
    let (model, authority) = (ModelServer::start().await, Authority::new());
    let base_url = model.openai_base_url();
    let proxy = ProxyServer::start(place(&base_url), ProxyMood::Serves).await;
    let installation = Installation::new().with_env("HTTP_PROXY", "http://127.0.0.1:9");
    let ca = installation.write("company.pem", authority.pem());
    let more = json!({ "proxy": { "http": proxy.url() }, "ca_file": ca });
    installation.write("config.yaml", config("http://models.example:8000/v1", more));
    model.script([Reply::text("From far away.")]);
    let said = run(&installation, &["run", "--model", "far/m", "Hello"]).await;
    assert!(said.success && said.stdout.contains("From far away."), "{said:?}");
    assert_eq!(proxy.lines(), ["POST http://models.example:8000/v1/chat/completions"]);

    // What is on this machine is reached directly, whatever the proxy.
    let broken = json!({ "proxy": { "all": "http://127.0.0.1:9" } });
    installation.write("config.yaml", config(&base_url, broken));
    model.script([Reply::text("From right here.")]);
    let said = run(&installation, &["run", "--model", "far/m", "Hello"]).await;
    assert!(said.success && said.stdout.contains("From right here."), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_fails_is_named_without_its_password() {
    for (base_url, mood, words) in [
        ("https://models.example/v1", ProxyMood::Demands("ann", "other"), vec!["407", "does not accept"]),
        ("http://models.example/v1", ProxyMood::Demands("ann", "other"), vec!["407", "does not accept"]),
        ("https://models.example/v1", ProxyMood::Answers(502), vec!["502"]),
        ("http://models.example/v1", ProxyMood::Answers(502), vec!["502"]),
        ("https://models.example/v1", ProxyMood::Closes, vec![]),
        ("http://models.example/v1", ProxyMood::Closes, vec![]),
        ("http://models.example/v1", ProxyMood::Hangs, vec!["did not answer"]),
        ("https://models.example/v1", ProxyMood::Hangs, vec![]),
    ] {
        let proxy = ProxyServer::start("127.0.0.1:9", mood.clone()).await;
        let installation = Installation::new().with_env("ALL_PROXY", proxy.url_with("ann", "hush-hush"));
        installation.write("config.yaml", config(base_url, json!({})));
        let said = run(&installation, &["run", "--model", "far/m", "Hello"]).await;
        assert_eq!(said.code, Some(2), "{said:?}");
        for word in words.iter().chain(&[proxy.url().as_str()]) {
            assert!(said.stderr.contains(word), "{mood:?} {word}: {said:?}");
        }
        assert!(!said.stderr.contains("hush") && !has(&kept(&installation), "hush-hush"), "{said:?}");
    }
}

#[test]
fn settings_of_the_way_out_that_cannot_be_used_are_named_at_the_start() {
    let start = |installation: &Installation, words: &[&str]| {
        let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
        refused.assert_refused(words);
        assert!(!refused.stderr.contains("hush"), "{refused:?}");
    };
    let missing = Installation::new().with_env("SSL_CERT_FILE", "/nowhere/company.pem");
    start(&missing, &["SSL_CERT_FILE", "/nowhere/company.pem"]);
    let installation = Installation::new();
    let text = installation.write("notes.txt", "no certificate");
    installation.write("config.yaml", json!({ "ca_file": text }).to_string());
    start(&installation, &["ca_file", "notes.txt", "no certificate"]);
    installation.write("config.yaml", "proxy: { https: 'socks5://ann:hush@proxy:1080' }");
    start(&installation, &["proxy.https", "socks5:// is not supported", "http://proxy.example:3128"]);
    installation.write("config.yaml", "proxy: { no_proxy: [10.0.0.0/99] }");
    start(&installation, &["proxy.no_proxy[0]", "10.0.0.0/99"]);
    installation.write("config.yaml", "proxy: { htps: x }");
    start(&installation, &["htps", "did you mean https?"]);
    let variable = Installation::new().with_env("ALL_PROXY", "socks5h://ann:hush@proxy:1080");
    start(&variable, &["ALL_PROXY", "socks5h:// is not supported"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_go_through_the_proxy_too() {
    let collector = Receiver::start().await;
    let proxy = ProxyServer::start(place(&collector.url), ProxyMood::Serves).await;
    let installation = Installation::new().with_env("HTTP_PROXY", proxy.url());
    let traces = json!({ "traces": { "endpoint": "http://collector.example:4318/v1/traces", "headers": { "x-team": "hats" } } });
    installation.write("config.yaml", traces.to_string());
    let serving = tokio::task::spawn_blocking(move || {
        let server = installation.serve();
        let key = server.shown_key().unwrap().to_owned();
        let session = server.create_session(&key, "demo/fast");
        server.say(&key, &session, "hello");
        crate::kill::until_idle(&server, &key, &session, 1);
        server.stop();
    });
    within("a server that stops", serving).await.unwrap();
    assert_eq!(proxy.lines()[0], "POST http://collector.example:4318/v1/traces");
    let sent = &collector.received()[0];
    assert_eq!((sent.header("x-team"), sent.header("content-type")), ("hats", "application/x-protobuf"));
    assert!(has(&sent.body, "model_call"));
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_go_through_a_proxy_only_if_it_is_for_callers() {
    let receiver = Receiver::start().await;
    for callers in [false, true] {
        let proxy = ProxyServer::start(place(&receiver.url), ProxyMood::Serves).await;
        let installation = Installation::new();
        let config = json!({
            "deliveries": { "event_webhook_url": "http://hooks.example/in" },
            "proxy": { "http": proxy.url(), "callers": callers },
        });
        installation.write("config.yaml", config.to_string());
        let serving = tokio::task::spawn_blocking(move || {
            let server = installation.serve();
            let key = server.shown_key().unwrap().to_owned();
            let session = server.create_session(&key, "demo/fast");
            server.say(&key, &session, "hello");
            let began = Instant::now();
            loop {
                let list = installation.json(&["deliveries", "list"]);
                let items = list["items"].as_array().unwrap();
                if items.iter().any(|item| item["attempts"] != json!([])) {
                    break;
                }
                assert!(began.elapsed() < PATIENCE, "no delivery was tried: {list}");
            }
            server.stop();
        });
        within("a delivery that was tried", serving).await.unwrap();
        assert_eq!(proxy.lines().is_empty(), !callers, "{:?}", proxy.lines());
    }
    assert!(!receiver.received().is_empty());
}
