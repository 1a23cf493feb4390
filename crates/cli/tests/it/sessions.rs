//! `petasos sessions`.

use std::io::{BufRead, BufReader};

use crate::installation::{Installation, Server};

/// Sends a message and waits for the end of its turn.
fn talk(server: &Server, key: &str, session: &str) {
    let path = format!("/v1/sessions/{session}/events/stream?after=0");
    let stream = BufReader::new(server.open("GET", &path, key, ""));
    server.say(key, session, "Hello!");
    let ended = stream.lines().map(Result::unwrap).any(|line| line == "event: session.status_idle");
    assert!(ended);
}

#[test]
fn listed_shown_and_put_away() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let first = server.create_session(&key, "demo/echo");
    let second = server.create_session(&key, "demo/echo");
    talk(&server, &key, &first);

    let ids = |arguments: &[&str]| {
        let list = installation.json(&[&["sessions", "list"], arguments].concat());
        let ids = list["data"].as_array().unwrap().iter().map(|session| session["id"].as_str().unwrap());
        ids.collect::<Vec<_>>().join(" ")
    };
    let both = format!("{second} {first}");
    assert_eq!(ids(&[]), both);
    assert_eq!(ids(&["--user", "nobody"]), "");
    assert_eq!(ids(&["--user", "ada", "--status", "idle", "--limit", "1"]), second);
    let agent = installation.json(&["sessions", "get", &first])["agentId"].as_str().unwrap().to_owned();
    assert_eq!(ids(&["--agent", &agent]), first);

    let shown = installation.run(&["sessions", "get", &first]).stdout;
    assert!(shown.contains("user: Hello!") && shown.contains("agent: "), "{shown}");
    let events = installation.run(&["sessions", "events", &first]).stdout;
    assert!(events.contains("user.message") && events.contains("session.status_idle"), "{events}");

    assert!(installation.run(&["sessions", "archive", &first]).success);
    assert_eq!(ids(&[]), second);
    assert_eq!(ids(&["--archived"]), both);
    assert_eq!(ids(&["--status", "archived"]), first);
    server.stop();

    // The same without a server.
    assert!(installation.run(&["sessions", "delete", &second]).success);
    assert_eq!(ids(&["--archived"]), first);
    installation.run(&["sessions", "get", &second]).assert_refused(&[&second, "not_found"]);
}

#[test]
fn one_that_waits_for_somebody_is_listed_as_such() {
    let installation = Installation::new();
    let waits = installation.run(&["run", "--model", "demo/fast", "ask me Which? A | B"]);
    assert_eq!(waits.code, Some(3));
    assert!(installation.run(&["run", "--model", "demo/fast", "Hello"]).success);
    let list = installation.run(&["sessions", "list"]).stdout;
    let words = |line: &str| line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    assert_eq!(list.lines().map(words).collect::<Vec<_>>(), ["STATUS", "idle", "waiting"], "{list}");
}

#[test]
fn a_tenant_is_a_wall() {
    let installation = Installation::new();
    let server = installation.serve();
    let session = server.create_session(server.shown_key().unwrap(), "demo/echo");
    let other = ["sessions", "get", &session, "--tenant", "acme"];
    installation.run(&other).assert_refused(&["not_found"]);
    assert!(installation.run(&["sessions", "list", "--tenant", "acme"]).stderr.contains("no sessions"));
}
