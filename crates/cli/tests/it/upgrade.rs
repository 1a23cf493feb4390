//! A database of an earlier version opens, and everything that was under way in it goes on.
//!
//! `tests/fixtures/make` made the database with the binary of the commit in its directory's name.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use serde_json::{Value, json};

use crate::installation::{Installation, PATIENCE, Server};
use crate::kill::until_idle;

const KEY: &str = "pk_fixture_admin_key";
/// Where the fixture's deliveries go, and where this test's model listens.
const OUTSIDE: &str = "127.77.14.1:7399";

/// Every type of event that commit 6705ba0 can write.
const TYPES: &[&str] = &[
    "agent.clarify_request",
    "agent.custom_tool_use",
    "agent.mcp_tool_result",
    "agent.mcp_tool_use",
    "agent.message",
    "agent.secret_request",
    "agent.sudo_request",
    "agent.thinking",
    "agent.thread_message_received",
    "agent.thread_message_sent",
    "agent.tool_result",
    "agent.tool_use",
    "application.event",
    "person.message",
    "person.note",
    "run.opened",
    "run.reminded",
    "run.settled",
    "session.action_expired",
    "session.archived",
    "session.compacted",
    "session.compaction_started",
    "session.conversation_changed",
    "session.customer_variables",
    "session.event_metadata_changed",
    "session.events_deleted",
    "session.message_seeded",
    "session.metadata_changed",
    "session.prompt_prepared",
    "session.settings_changed",
    "session.status_idle",
    "session.status_running",
    "session.system_message",
    "session.titled",
    "span.model_finished",
    "span.model_started",
    "tool.started",
    "user.clarify_result",
    "user.custom_tool_result",
    "user.interrupt",
    "user.message",
    "user.secret_result",
    "user.steer",
    "user.sudo_result",
    "user.tool_confirmation",
];

/// Unpacks the fixture into the home and returns the names of its sessions.
#[allow(clippy::disallowed_methods, reason = "these tests drive the binary from outside")]
fn unpack(installation: &Installation) -> Value {
    let archive =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures").join("0.1.0-6705ba0/home.tar.gz");
    std::fs::create_dir_all(installation.home()).unwrap();
    let tar = Command::new("tar").arg("xzf").arg(archive).arg("-C").arg(installation.home()).status();
    assert!(tar.unwrap().success());
    let outside = json!({
        "providers": { "fixture": { "kind": "openai", "base_url": format!("http://{OUTSIDE}/v1"), "api_key": "sk" } },
        "egress": { "allow": ["127.0.0.0/8"] },
        "deliveries": { "token": "fixture-token" },
    });
    installation.write("config.yaml", outside.to_string());
    serde_json::from_str(&std::fs::read_to_string(installation.file("sessions.json")).unwrap()).unwrap()
}

/// Answers model calls and takes deliveries, whose paths and bodies it reports.
fn outside() -> Receiver<(String, Value)> {
    let listener = TcpListener::bind(OUTSIDE).unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            thread::spawn(move || while answer(&stream, &sender).is_some() {});
        }
    });
    receiver
}

/// Answers one request of a connection.
fn answer(stream: &TcpStream, sender: &mpsc::Sender<(String, Value)>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        if header.trim().is_empty() {
            break;
        }
        if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let (kind, text) = if path.ends_with("/chat/completions") {
        ("text/event-stream", model_answer(&body))
    } else {
        sender.send((path, body)).ok()?;
        ("application/json", "{}".to_owned())
    };
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", text.len());
    (&*stream).write_all(format!("{head}{text}").as_bytes()).ok()
}

fn model_answer(request: &Value) -> String {
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        format!("data: {}\n\n", json!({ "id": "c", "object": "chat.completion.chunk", "choices": [choice] }))
    };
    let emits = request["tools"].to_string().contains("emit_output");
    let (delta, reason) = if emits {
        let arguments = json!({ "output": { "decision": "approved" } }).to_string();
        let function = json!({ "name": "emit_output", "arguments": arguments });
        (json!({ "tool_calls": [{ "index": 0, "id": "call_1", "function": function }] }), "tool_calls")
    } else {
        (json!({ "content": "Going on." }), "stop")
    };
    format!("{}{}data: [DONE]\n\n", chunk(delta, Value::Null), chunk(json!({}), json!(reason)))
}

/// The types of the stored events.
#[allow(clippy::disallowed_methods, reason = "these tests look behind the binary")]
fn types_in(installation: &Installation) -> BTreeSet<String> {
    let database = rusqlite::Connection::open(installation.file("petasos.db")).unwrap();
    let mut query = database.prepare("SELECT DISTINCT type FROM events").unwrap();
    let types = query.query_map([], |row| row.get(0)).unwrap();
    types.map(Result::unwrap).collect()
}

fn shown(server: &Server, session: &Value) -> Value {
    let path = format!("/v1/sessions/{}", session.as_str().unwrap());
    let (status, shown) = server.request("GET", &path, KEY, "");
    assert_eq!(status, 200, "{shown}");
    shown
}

/// Answers the one pending action of a session and waits for the end of its turn.
fn answer_action(server: &Server, session: &Value, event: impl Fn(&Value) -> Value) {
    let pending = shown(server, session)["pendingActions"].clone();
    assert_eq!(pending.as_array().unwrap().len(), 1, "{pending}");
    let id = session.as_str().unwrap();
    let body = event(&pending[0]["id"]).to_string();
    let (status, answer) = server.request("POST", &format!("/v1/sessions/{id}/events"), KEY, &body);
    assert_eq!(status, 200, "{answer}");
    let idle = until_idle(server, KEY, id, 2);
    assert_eq!(idle["payload"]["stop_reason"]["type"], "end_turn", "{idle}");
}

#[test]
fn database_of_an_earlier_version_opens_and_goes_on() {
    let installation = Installation::new().with_env("PETASOS_API_KEY", KEY);
    let named = unpack(&installation);
    let expected: BTreeSet<String> = TYPES.iter().map(|&name| name.to_owned()).collect();
    assert_eq!(types_in(&installation), expected);
    let deliveries = outside();
    let server = installation.serve();

    // Open turns end: a model call is made again, the outcome of a command is told as unknown.
    for name in ["model_call", "command"] {
        let idle = until_idle(&server, KEY, named[name].as_str().unwrap(), 1);
        assert_eq!(idle["payload"]["stop_reason"]["type"], "end_turn", "{name}: {idle}");
    }
    let messages = shown(&server, &named["command"])["messages"].to_string();
    assert!(messages.contains("unknown"), "{messages}");

    let text = json!([{ "type": "text", "text": "shipped" }]);
    answer_action(
        &server,
        &named["waits_for_confirmation"],
        |id| json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "deny" }),
    );
    answer_action(
        &server,
        &named["waits_for_clarify"],
        |id| json!({ "type": "user.clarify_result", "request_id": id, "answer": "grey" }),
    );
    answer_action(
        &server,
        &named["waits_for_custom_tool"],
        |id| json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": text }),
    );
    answer_action(
        &server,
        &named["waits_for_secret"],
        |id| json!({ "type": "user.secret_result", "request_id": id, "value": "s3cret" }),
    );
    answer_action(
        &server,
        &named["waits_for_sudo"],
        |id| json!({ "type": "user.sudo_result", "request_id": id, "password": "none" }),
    );

    let mut events = Vec::new();
    let mut callbacks = BTreeSet::new();
    while events.len() < 4 || callbacks.len() < 2 {
        let (path, body) = deliveries.recv_timeout(PATIENCE).expect("all deliveries arrive");
        match path.as_str() {
            "/events" => events.push(body["offset"].as_u64().unwrap()),
            _ => drop(callbacks.insert(body["run_id"].as_str().unwrap().to_owned())),
        }
    }
    assert!(events.is_sorted(), "{events:?}");
    for name in ["settled_run", "running_run"] {
        assert!(callbacks.contains(named[name].as_str().unwrap()), "{name}: {callbacks:?}");
    }
    let (_, run) =
        server.request("GET", &format!("/runs/{}", named["running_run"].as_str().unwrap()), KEY, "");
    // Its time may be over by now; the end must be one of the two.
    assert!(run["status"] == "succeeded" || run["error"]["code"] == "timeout", "{run}");

    // The agent of conversations loses the tools that ask, which nobody could answer.
    let (_, agent) = server.request("GET", "/v1/agents/interactiveAgent", KEY, "");
    assert_eq!(
        (&agent["version"], &agent["tools"][0]["defaultConfig"]["enabled"]),
        (&json!(2), &json!(false))
    );
    let talk = named["talk"].as_str().unwrap();
    server.say(KEY, talk, "still there?");
    assert_eq!(shown(&server, &named["talk"])["title"], "Hats");
    assert!(shown(&server, &named["archived"])["archivedAt"].is_string());
    let conversation =
        format!("/conversation/sessions/{}/events?wait_for_data=0", named["conversation"].as_str().unwrap());
    let (status, events) = server.request("GET", &conversation, KEY, "");
    assert_eq!(status, 200, "{events}");
    assert!(
        events.to_string().contains("A person here.") && !events.to_string().contains("forget this"),
        "{events}"
    );
}
