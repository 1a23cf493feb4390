//! Starting, stopping, and the admin key.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;

use crate::installation::{Installation, mode};

#[test]
fn the_first_start_shows_its_key_to_a_terminal() {
    let installation = Installation::new();
    let mut terminal = installation.at_terminal(&["serve", "--listen", "127.0.0.1:0"]);
    terminal.wait_for("user.message");
    let key = std::fs::read_to_string(installation.file("admin.key")).unwrap();
    assert!(terminal.shown().contains(key.trim()), "{}", terminal.shown());
    terminal.signal("TERM");
    terminal.finish();
}

#[test]
fn the_first_start_makes_a_key_and_names_its_file_once() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    assert!(!server.banner.contains(&key), "{}", server.banner);
    assert_eq!(std::fs::read_to_string(installation.file("admin.key")).unwrap().trim(), key);
    assert_eq!(mode(&installation.file("admin.key")), 0o600);
    assert_eq!(mode(&installation.home()), 0o700);
    assert_eq!(server.request("GET", "/v1/agents", &key, "").0, 200);
    server.stop();

    let server = installation.serve();
    assert_eq!(server.shown_key(), None);
    assert!(server.banner.contains("admin.key"), "{}", server.banner);
    assert_eq!(server.request("GET", "/v1/agents", &key, "").0, 200);
}

#[test]
fn the_key_of_the_environment_wins() {
    let installation = Installation::new();
    let kept = installation.serve().shown_key().unwrap().to_owned();
    let installation = installation.with_env("PETASOS_API_KEY", "from-the-environment");
    let server = installation.serve();
    assert!(!server.banner.contains("from-the-environment") && server.shown_key().is_none());
    assert!(server.banner.contains("Bearer $PETASOS_API_KEY"), "{}", server.banner);
    assert_eq!(server.request("GET", "/v1/agents", "from-the-environment", "").0, 200);
    assert_eq!(server.request("GET", "/v1/agents", &kept, "").0, 401);
    assert!(installation.run(&["agents", "list"]).success);
}

#[test]
fn with_a_key_from_the_environment_none_is_made() {
    let installation = Installation::new().with_env("PETASOS_API_KEY", "given");
    let _server = installation.serve();
    assert!(!installation.file("admin.key").exists());
}

#[test]
fn sigterm_ends_streams_and_leaves_nothing_behind() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let known: serde_json::Value =
        serde_json::from_slice(&std::fs::read(installation.file("server.json")).unwrap()).unwrap();
    assert_eq!(known["url"], server.url);
    let session = server.create_session(&key, "demo/echo");
    let path = format!("/v1/sessions/{session}/events/stream");
    let mut stream = BufReader::new(server.open("GET", &path, &key, ""));
    let mut status = String::new();
    stream.read_line(&mut status).unwrap();
    assert!(status.contains("200"), "{status}");

    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(0));
    stream.read_to_string(&mut String::new()).unwrap();
    assert!(!installation.file("server.json").exists());
    assert!(!installation.file("petasos.db-wal").exists());
}

#[test]
fn sigint_ends_it_too() {
    let installation = Installation::new();
    let mut server = installation.serve();
    server.signal("INT");
    assert_eq!(server.wait().code(), Some(0));
}

/// A model endpoint that takes calls and never answers.
fn silent_model() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    (listener, url)
}

#[test]
fn a_second_signal_ends_a_turn_that_does_not_end() {
    let (model, url) = silent_model();
    let installation = Installation::new().with_env("OPENAI_BASE_URL", url);
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "openai/silent");
    server.say(&key, &session, "Hello!");
    let _call = model.accept().unwrap();
    server.signal("TERM");
    server.wait_for_log("stopping");
    server.signal("TERM");
    assert_eq!(server.wait().code(), Some(143));
}

#[test]
fn a_killed_turn_is_picked_up() {
    let (model, url) = silent_model();
    let installation = Installation::new().with_env("OPENAI_BASE_URL", url);
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "openai/silent");
    server.say(&key, &session, "Hello!");
    let _call = model.accept().unwrap();
    server.signal("KILL");
    server.wait();
    // What the killed server left behind leads nobody astray, and looking at a session does not start its turn.
    assert!(installation.file("server.json").exists());
    assert_eq!(installation.json(&["sessions", "get", &session])["status"], "running");
    assert!(!installation.file("server.json").exists());
    model.set_nonblocking(true).unwrap();
    assert!(model.accept().is_err());
    model.set_nonblocking(false).unwrap();

    let server = installation.serve();
    assert!(server.banner.contains("1 picked up"), "{}", server.banner);
    let _call = model.accept().unwrap();
}

#[test]
fn the_configuration_says_where_to_listen_and_the_flag_wins() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let installation = Installation::new();
    installation.write("config.yaml", "listen: 127.0.0.1:0\n");
    installation.serve_with(&[]).stop();
    let address = taken.local_addr().unwrap().to_string();
    let installation = installation.with_env("PETASOS_LISTEN", address.clone());
    installation.run(&["serve"]).assert_refused(&[&address]);
    installation.serve().stop();
}

#[test]
fn the_database_can_be_elsewhere_and_commands_find_it() {
    let installation = Installation::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let database = elsewhere.path().join("other.db");
    let url = format!("sqlite:{}", database.display());
    let server = installation.serve_with(&["--listen", "127.0.0.1:0", "--database-url", &url]);
    installation.json(&["keys", "create", "--name", "elsewhere"]);
    server.stop();
    assert!(database.exists() && !installation.file("petasos.db").exists());
    let keys = installation.json(&["keys", "list", "--database-url", &url]);
    assert_eq!(keys["data"][0]["name"], "elsewhere");
}
