//! What is damaged harms nobody else.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::installation::{Installation, PATIENCE, Server};

/// Changes a database behind the back of a server that is not running.
#[allow(clippy::disallowed_methods, reason = "this makes what the store must notice")]
fn damage(installation: &Installation, sql: &str) {
    let database = rusqlite::Connection::open(installation.file("petasos.db")).unwrap();
    assert!(database.execute(sql, []).unwrap() > 0, "{sql}");
    database.close().unwrap();
}

/// An installation with the routines `aa` and `zz`, with these lines besides.
fn installation(lines: &str) -> Installation {
    let installation = Installation::new();
    installation.write("config.yaml", json!({ "egress": { "allow": ["127.0.0.1"] } }).to_string());
    for name in ["aa", "zz"] {
        let routine = "agent: { model: demo/fast }\noutput_schema: { type: object, properties: { n: {} } }\n";
        installation.write(&format!("routines/{name}.yaml"), format!("{routine}{lines}"));
    }
    installation
}

#[allow(clippy::disallowed_methods, reason = "a pace: asking without a pause takes the server's own time")]
fn until(what: &str, mut look: impl FnMut() -> Option<Value>) -> Value {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn settled(server: &Server, key: &str, run: &str) -> Value {
    until("the run", || {
        let (_, run) = server.request("GET", &format!("/runs/{run}"), key, "");
        (run["status"] == "failed" || run["status"] == "succeeded").then_some(run)
    })
}

#[test]
fn a_run_whose_session_is_damaged_fails_and_the_server_starts() {
    let installation = installation("");
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let (_, session) = server.request("POST", "/conversation/sessions", &key, "{}");
    let session = session["id"].as_str().unwrap();
    let path = format!("/conversation/sessions/{session}");
    // A person answers there, so that the run waits.
    assert_eq!(server.request("PATCH", &path, &key, r#"{"mode":"manual"}"#).0, 200);
    let body = json!({ "session_id": session, "callback_url": "http://127.0.0.1:9/done" }).to_string();
    let (status, run) = server.request("POST", "/routines/aa/trigger", &key, &body);
    assert_eq!(status, 202, "{run}");
    server.signal("KILL");
    server.wait();
    damage(&installation, &format!("UPDATE sessions SET title = 'other' WHERE id = '{session}'"));
    let server = installation.serve();
    let run = settled(&server, &key, run["run_id"].as_str().unwrap());
    assert_eq!(run["error"]["code"], "session_error", "{run}");
}

#[test]
fn a_session_whose_log_is_damaged_can_be_deleted() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/fast");
    server.say(&key, &session, "hello");
    crate::kill::until_idle(&server, &key, &session, 1);
    server.stop();
    damage(&installation, "UPDATE events SET payload = '{}' WHERE sequence = 1");
    let server = installation.serve();
    let path = format!("/v1/sessions/{session}");
    assert_eq!(server.request("GET", &path, &key, "").0, 500);
    assert_eq!(server.request("DELETE", &path, &key, "").0, 200);
    assert_eq!(server.request("GET", &path, &key, "").0, 404);
}

#[test]
fn a_schedule_that_cannot_be_kept_stops_no_other() {
    let installation = installation("schedule: { cron: '* * * * * *' }\n");
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let runs = |server: &Server, routine: &str| {
        let (_, page) = server.request("GET", &format!("/routines/{routine}/runs"), &key, "");
        page["items"].as_array().and_then(|runs| runs.first()).map(|run| run["run_id"].clone())
    };
    until("the first runs", || runs(&server, "aa").and(runs(&server, "zz")));
    server.stop();
    damage(&installation, "UPDATE agent_versions SET definition = '{}' WHERE id = 'routine_aa'");
    let server = installation.serve();
    let last = runs(&server, "zz");
    until("a further run", || runs(&server, "zz").filter(|run| Some(run) != last.as_ref()));
}
