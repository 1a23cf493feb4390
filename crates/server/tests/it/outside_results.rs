//! `transform_tool_result` for results that come from outside: of the application's tools, answers and secrets.

use petasos_core::model::Usage;
use petasos_models::{Catalog, ModelFacts};
use petasos_testkit::{EventStream, Reply, Setup, TestServer};
use serde_json::{Value, json};

use crate::plugins::{start, start_with};

/// Puts a mark before every result, and writes down what it was told.
const PLUGIN: &str = r#"
import json, os
def mark(tool_name, arguments, result, **kwargs):
    with open(os.environ["WORLD"] + "/told.jsonl", "a") as told:
        told.write(json.dumps([tool_name, arguments, result]) + "\n")
    return "[checked] " + result if tool_name != "todo" else None
def register(ctx):
    ctx.register_hook("transform_tool_result", mark)
"#;

async fn session(server: &TestServer) -> String {
    let custom = json!({ "type": "custom_tool", "name": "check_order", "description": "Looks up an order." });
    let agent = server.agent_with(json!({ "tools": [custom, { "type": "agent_toolset" }] })).await;
    server.client.session(&agent).await
}

/// The id under which the next event of a type asks for something.
async fn asked(stream: &mut EventStream, event: &str, field: &str) -> Value {
    let frames = stream.until(|frame| frame.event == event).await;
    frames.last().unwrap().data["payload"][field].clone()
}

/// The messages of the last model call.
fn read(server: &TestServer) -> String {
    server.model.requests().last().unwrap().body["messages"].to_string()
}

#[tokio::test]
async fn the_model_reads_what_hooks_make_of_a_result_and_the_log_keeps_what_came() {
    let (server, home) = start(PLUGIN).await;
    let session = session(&server).await;
    let mut stream = server.client.stream(&session, "").await;
    server.model.script([
        Reply::tool_calls([
            ("check_order", json!({ "order_id": "1" })),
            ("check_order", json!({ "order_id": "2" })),
        ]),
        Reply::tool_call("clarify", json!({ "question": "Which?" })),
        Reply::tool_call("request_secret", json!({ "name": "TOKEN", "prompt": "Please." })),
        Reply::text("Done."),
    ]);
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let calls = frames.iter().filter(|frame| frame.event == "agent.custom_tool_use");
    for (number, call) in calls.enumerate() {
        let content = json!([{ "type": "text", "text": format!("shipped {number}") }]);
        let id = &call.data["payload"]["id"];
        let result = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
        server.client.event(&session, result).await.expect(200);
        server.wait_until_asleep().await;
    }
    let id = asked(&mut stream, "agent.clarify_request", "request_id").await;
    assert!(read(&server).contains("[checked] shipped 0") && read(&server).contains("[checked] shipped 1"));
    let answer = json!({ "type": "user.clarify_result", "request_id": id, "answer": "The red one." });
    server.client.event(&session, answer).await.expect(200);
    let id = asked(&mut stream, "agent.secret_request", "request_id").await;
    assert!(read(&server).contains("[checked] The red one."), "{}", read(&server));
    let secret = json!({ "type": "user.secret_result", "request_id": id, "value": "t0psecret" });
    server.client.event(&session, secret).await.expect(200);
    stream.until(|frame| frame.stop() == Some("end_turn")).await;
    assert!(read(&server).contains("[checked] The user supplied it."), "{}", read(&server));

    let told = std::fs::read_to_string(home.path().join("told.jsonl")).unwrap();
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(told.len(), 4, "each result once: {told:?}");
    assert_eq!(told[0], json!(["check_order", { "order_id": "1" }, "shipped 0"]));
    assert!(!json!(told).to_string().contains("t0psecret"), "{told:?}");
    let log = json!(server.client.events(&session).await).to_string();
    assert!(log.contains("shipped 1") && log.contains("The red one.") && !log.contains("[checked]"), "{log}");

    // Folded anew from the log, it is the same, and nobody is asked about it again.
    let server = server.restart().await;
    server.model.script([Reply::text("Sure.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "Sure?").await.expect(200);
    stream.until_idle().await;
    let read = read(&server);
    for text in [
        "[checked] shipped 0",
        "[checked] shipped 1",
        "[checked] The red one.",
        "[checked] The user supplied",
    ] {
        assert_eq!(read.matches(text).count(), 1, "{text}: {read}");
    }
    let told = std::fs::read_to_string(home.path().join("told.jsonl")).unwrap();
    assert_eq!(told.lines().count(), 4, "{told}");
}

#[tokio::test]
async fn a_summary_is_made_of_what_hooks_make_of_a_result() {
    let plugin = r#"
def hide(result, **kwargs):
    return result.replace("classified", "hidden")
def register(ctx):
    ctx.register_hook("transform_tool_result", hide)
"#;
    let facts = ModelFacts { context_window: Some(4_000), ..ModelFacts::default() };
    let catalog = Catalog { models: [("*".to_owned(), facts)].into(), ..Catalog::default() };
    let (server, _home) = start_with(plugin, Setup { catalog, ..Setup::default() }).await;
    let session = session(&server).await;
    server.model.script([
        Reply::tool_call("check_order", json!({})).usage(Usage { input_tokens: 2_300, ..Usage::default() }),
        Reply::text("Goal: an order."),
        Reply::text("Done."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, &"Look it up. ".repeat(700)).await.expect(200);
    let id = asked(&mut stream, "agent.custom_tool_use", "id").await;
    let content = json!([{ "type": "text", "text": "classified order ".repeat(1_000) }]);
    let result = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
    server.client.event(&session, result).await.expect(200);
    stream.until(|frame| frame.stop() == Some("end_turn")).await;
    let requests = server.model.requests();
    assert_eq!(requests.len(), 3, "the second one makes the summary");
    let read: Vec<String> = requests.iter().map(|request| request.body.to_string()).collect();
    assert!(read[1].contains("hidden order"), "{}", read[1]);
    assert!(!read.concat().contains("classified order"), "{read:?}");
}
