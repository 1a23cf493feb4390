//! SIGKILL at the moments that matter: nothing that was acknowledged is lost, and nothing is said twice.

use std::io::{BufRead, BufReader};

use serde_json::{Value, json};

use crate::installation::{Installation, Server};

/// Follows a session from its beginning until the `count`th time that it is idle; returns the last idle event.
pub(crate) fn until_idle(server: &Server, key: &str, session: &str, count: usize) -> Value {
    let path = format!("/v1/sessions/{session}/events/stream?after=0");
    let stream = BufReader::new(server.open("GET", &path, key, ""));
    let events = stream
        .lines()
        .map(Result::unwrap)
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    let mut idle = events.filter(|event| event["type"] == "session.status_idle");
    idle.nth(count - 1).expect("the session becomes idle")
}

fn events(server: &Server, key: &str, session: &str) -> Vec<Value> {
    let (status, page) = server.request("GET", &format!("/v1/sessions/{session}/events"), key, "");
    assert_eq!(status, 200);
    page["data"].as_array().unwrap().clone()
}

#[test]
fn a_pause_outlives_the_process() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    server.say(&key, &session, "ask me Which one? A | B");
    let idle = until_idle(&server, &key, &session, 1);
    let id = idle["payload"]["stop_reason"]["event_ids"][0].clone();
    let before = events(&server, &key, &session);
    server.signal("KILL");
    server.wait();

    let server = installation.serve();
    assert_eq!(events(&server, &key, &session), before);
    let (_, shown) = server.request("GET", &format!("/v1/sessions/{session}"), &key, "");
    assert_eq!(shown["pendingActions"][0]["id"], id);
    let answer = json!({ "type": "user.clarify_result", "request_id": id, "answer": "B" }).to_string();
    assert_eq!(server.request("POST", &format!("/v1/sessions/{session}/events"), &key, &answer).0, 200);
    let idle = until_idle(&server, &key, &session, 2);
    assert_eq!(idle["payload"]["stop_reason"], json!({ "type": "end_turn" }));
}

#[test]
fn a_message_that_was_acknowledged_is_answered_by_the_next_process() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    for round in 1..=5 {
        server.say(&key, &session, &format!("message {round}"));
        // Between the acknowledgement and whatever comes next.
        server.signal("KILL");
        server.wait();
        server = installation.serve();
        let idle = until_idle(&server, &key, &session, round);
        assert_eq!(idle["payload"]["stop_reason"], json!({ "type": "end_turn" }));
        let (_, shown) = server.request("GET", &format!("/v1/sessions/{session}"), &key, "");
        assert_eq!(shown["messages"].as_array().unwrap().len(), 2 * round);
    }
}
