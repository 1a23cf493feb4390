//! `petasos doctor`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde_json::Value;

use crate::installation::Installation;

/// Runs the doctor and returns its exit code and its lines, each as `status what: detail`.
fn doctor(installation: &Installation, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let finished = installation.run(&[&["doctor", "--json"], arguments].concat());
    let report: Value = serde_json::from_str(&finished.stdout).expect(&finished.stderr);
    assert_eq!(report["ok"], finished.code == Some(0));
    let text = |check: &Value, name: &str| check[name].as_str().unwrap_or_default().to_owned();
    let line = |check: &Value| {
        format!("{} {}: {}", text(check, "status"), text(check, "what"), text(check, "detail"))
    };
    (finished.code, report["checks"].as_array().unwrap().iter().map(line).collect())
}

#[track_caller]
fn assert_has(lines: &[String], start: &str, words: &str) {
    assert!(
        lines.iter().any(|line| line.starts_with(start) && line.contains(words)),
        "{start} {words}: {lines:#?}"
    );
}

/// A provider that answers everything with this status.
fn provider(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.read(&mut [0; 4096]);
            let _ =
                write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}");
        }
    });
    url
}

#[test]
fn a_new_installation_is_well_and_stays_as_it_is() {
    let installation = Installation::new();
    let (code, lines) = doctor(&installation, &[]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_has(&lines, "ok home", "not there yet");
    assert_has(&lines, "ok provider demo", "answers");
    assert_has(&lines, "warn providers", "only demo models work");
    assert!(lines.iter().any(|line| line.contains(" python3: ")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains(" sandbox: landlock: ")), "{lines:#?}");
    assert!(!installation.home().exists());
}

#[test]
fn an_installation_in_use_is_looked_at() {
    let installation = Installation::new();
    let server = installation.serve();
    let (code, lines) = doctor(&installation, &[]);
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_has(&lines, "ok server", &server.url);
    assert_has(&lines, "ok admin key", "admin.key");
    assert_has(&lines, "ok disk", "fsync");
    let url = server.url.clone();
    let installation = installation.with_env("PETASOS_URL", url.clone());
    assert_has(&doctor(&installation, &[]).1, "ok PETASOS_URL", "is healthy");
    server.stop();
    let (code, lines) = doctor(&installation, &[]);
    assert_eq!(code, Some(1));
    assert_has(&lines, "ok store", "opens");
    assert_has(&lines, "fail PETASOS_URL", &url);

    let open = |name: &str, mode| {
        std::fs::set_permissions(installation.file(name), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open("admin.key", 0o644);
    open("", 0o755);
    let text = installation.run(&["doctor"]).stdout;
    assert!(text.contains("warn  home: others can look into") && text.contains("→ run: chmod 700"), "{text}");
    assert!(text.contains("warn  admin key: others can read") && text.contains("→ run: chmod 600"), "{text}");
}

#[test]
fn what_is_broken_fails_with_its_cure() {
    let installation = Installation::new();
    installation.write("config.yaml", "listen_on: 127.0.0.1:0\n");
    installation.write("petasos.db", "x".repeat(4096));
    installation.write("admin.key", "two words");
    installation.write("agents/broken.yaml", "name: A\nmodel: echo\n");
    let (code, lines) = doctor(&installation, &[]);
    assert_eq!(code, Some(1));
    assert_has(&lines, "fail config", "config.yaml:1:");
    assert_has(&lines, "fail store", "not an SQLite database");
    assert_has(&lines, "fail admin key", "cannot be used");
    assert_has(&lines, "fail agent files", "broken.yaml:2: model");
}

#[test]
fn providers_are_asked() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let installation = Installation::new().with_env("GOOD_KEY", "secret-key");
    let config = format!(
        "providers:
  good: {{ kind: openai, base_url: '{}', api_key_env: GOOD_KEY }}
  silent: {{ kind: openai, base_url: '{}' }}
  wrong: {{ kind: anthropic, base_url: '{}', api_key: secret-key }}
  gone: {{ kind: openai, base_url: 'http://{gone}/v1' }}
  openai: {{}}
",
        provider(200),
        provider(404),
        provider(401),
    );
    installation.write("config.yaml", config);
    let (code, lines) = doctor(&installation, &[]);
    assert_eq!(code, Some(1));
    assert_has(&lines, "ok provider good", "is reachable; a key is set");
    assert_has(&lines, "ok provider silent", "does not list models (404)");
    assert_has(&lines, "warn provider wrong", "is reachable, but answers 401");
    assert_has(&lines, "fail provider gone", "cannot be reached");
    assert_has(&lines, "fail provider openai", "has no key");
    assert!(!lines.concat().contains("secret-key"), "{lines:#?}");
}

#[test]
fn the_search_engine_in_use_is_named_with_what_chose_it() {
    let (_, lines) = doctor(&Installation::new(), &[]);
    assert_has(&lines, "ok web_search", "there is no search engine");
    let installation =
        Installation::new().with_env("EXA_API_KEY", "s3cret").with_env("TAVILY_API_KEY", "s3cret");
    let (_, lines) = doctor(&installation, &[]);
    assert_has(&lines, "ok web_search", "tavily, because TAVILY_API_KEY is set; EXA_API_KEY not used");
    installation.write("config.yaml", "web: { search: { kind: exa } }\n");
    let (_, lines) = doctor(&installation, &[]);
    assert_has(&lines, "ok web_search", "exa, as web.search in config.yaml says");
    assert!(!lines.iter().any(|line| line.contains("s3cret")), "{lines:#?}");
}
