//! SIGKILL three times in a row while the same work is under way: the fourth start serves everybody else at once.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use crate::installation::{Installation, PATIENCE, Server};
use crate::kill::until_idle;

const KEY: &str = "pk_crash_loops";

/// A server that takes connections and never answers. Each one is told.
fn silent_server() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, reached) = mpsc::channel();
    thread::spawn(move || {
        let mut open: Vec<TcpStream> = Vec::new();
        for stream in listener.incoming() {
            open.push(stream.unwrap());
            if sender.send(()).is_err() {
                return;
            }
        }
    });
    (url, reached)
}

/// Kills the server three times while it waits for an answer, and starts it for the fourth time.
fn killed_three_times(
    installation: &Installation,
    mut server: Server,
    reached: &mpsc::Receiver<()>,
) -> Server {
    for _ in 0..3 {
        reached.recv_timeout(PATIENCE).expect("the work is under way");
        server.signal("KILL");
        server.wait();
        server = installation.serve();
    }
    server
}

fn health(server: &Server) -> Value {
    let (status, health) = server.request("GET", "/health", "", "");
    assert_eq!(status, 200);
    health
}

fn serves_others(server: &Server) {
    let session = server.create_session(KEY, "demo/fast");
    server.say(KEY, &session, "hello");
    assert_eq!(until_idle(server, KEY, &session, 1)["payload"]["stop_reason"]["type"], "end_turn");
}

fn doctor(installation: &Installation) -> String {
    installation.run(&["doctor"]).stdout
}

#[test]
fn read_only_call_is_told_unknown_after_three_kills() {
    let (url, reached) = silent_server();
    let installation = Installation::new().with_env("PETASOS_API_KEY", KEY);
    installation.write("config.yaml", json!({ "egress": { "allow": ["127.0.0.1"] } }).to_string());
    let server = installation.serve();
    let session = server.create_session(KEY, "demo/fast");
    server.say(KEY, &session, &format!(r#"call web_extract {{\"url\": \"{url}\"}}"#));
    let server = killed_three_times(&installation, server, &reached);

    let health = health(&server);
    assert_eq!(
        (&health["status"], &health["setAside"][0]["kind"]),
        (&json!("degraded"), &json!("tool_call"))
    );
    assert_eq!(health["setAside"][0]["sessionId"], session.as_str(), "{health}");
    assert!(!health.to_string().contains(&url), "ids only: {health}");
    serves_others(&server);
    let idle = until_idle(&server, KEY, &session, 1);
    assert_eq!(idle["payload"]["stop_reason"]["type"], "end_turn");
    let (_, page) = server.request("GET", &format!("/v1/sessions/{session}/events"), KEY, "");
    let results =
        page["data"].as_array().unwrap().iter().filter(|event| event["type"] == "agent.tool_result");
    let results: Vec<String> = results.map(Value::to_string).collect();
    assert!(results.len() == 1 && results[0].contains("outcome is unknown"), "{results:?}");
    assert!(reached.try_recv().is_err(), "the call is not made again");
    assert!(doctor(&installation).contains(&session));
    server.stop();
}

#[test]
fn delivery_is_set_aside_after_three_kills_and_everything_else_is_served() {
    let (url, reached) = silent_server();
    let installation = Installation::new().with_env("PETASOS_API_KEY", KEY);
    installation.write("config.yaml", json!({ "deliveries": { "event_webhook_url": url } }).to_string());
    let server = installation.serve();
    let session = server.create_session(KEY, "demo/fast");
    server.say(KEY, &session, "hello");
    until_idle(&server, KEY, &session, 1);
    let mut server = killed_three_times(&installation, server, &reached);

    let health = health(&server);
    let set_aside = health["setAside"].as_array().unwrap();
    assert_eq!(set_aside.len(), 1, "{health}");
    assert_eq!((&set_aside[0]["kind"], &set_aside[0]["sessionId"]), (&json!("delivery"), &json!(session)));
    let delivery = set_aside[0]["id"].as_str().unwrap();
    let (_, page) = server.request("GET", &format!("/v1/sessions/{session}/events"), KEY, "");
    let told =
        page["data"].as_array().unwrap().iter().find(|event| event["type"] == "session.work_set_aside");
    assert_eq!(told.expect("the log says so")["payload"]["id"], delivery);
    serves_others(&server);
    assert!(doctor(&installation).contains(delivery));
    // Without a server, too.
    server.signal("KILL");
    server.wait();
    assert!(doctor(&installation).contains(delivery));
}

#[test]
fn killed_imports_leave_nothing_that_a_start_picks_up() {
    let installation = Installation::new().with_env("PETASOS_API_KEY", KEY);
    let mut server = installation.serve();
    let session = server.create_session(KEY, "demo/fast");
    server.say(KEY, &session, "hello");
    until_idle(&server, KEY, &session, 1);
    let file = installation.file("session.jsonl");
    let path = file.to_str().unwrap();
    assert!(installation.run(&["sessions", "export", &session, path]).success);
    let exported = std::fs::read_to_string(&file).unwrap();
    let target = format!("/v1/sessions/{session}");
    for _ in 0..3 {
        assert_eq!(server.request("DELETE", &target, KEY, "").0, 200);
        // The request is on its way, and nobody waits for its answer.
        let _import = server.open("POST", "/v1/sessions/import", KEY, &exported);
        server.signal("KILL");
        server.wait();
        server = installation.serve();
        assert_eq!(health(&server)["setAside"], json!([]));
        if server.request("GET", &target, KEY, "").0 == 404 {
            assert_eq!(server.request("POST", "/v1/sessions/import", KEY, &exported).0, 201);
        }
    }
    assert_eq!(server.request("GET", &target, KEY, "").0, 200);
    server.stop();
}
