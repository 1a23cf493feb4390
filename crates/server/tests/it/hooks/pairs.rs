//! Whatever began has an end that is told: each tool call, each approval, and in their order the points of a turn.

use petasos_testkit::{EventStream, Reply, TestServer};
use serde_json::{Value, json};

use super::world::{Scripts, free_session, runs};

/// A server whose hooks note all tool calls and approvals in one file.
async fn listening(scripts: &Scripts) -> TestServer {
    let all = ["pre_tool_call", "post_tool_call", "pre_approval_request", "post_approval_response"];
    let note = scripts.recorder("all");
    let hooks: serde_json::Map<String, Value> =
        all.iter().map(|event| ((*event).to_owned(), json!([{ "command": note }]))).collect();
    scripts.server(hooks.into()).await
}

/// What was told, in short: the event, and how it ended.
async fn told(scripts: &Scripts, count: usize) -> Vec<(String, String)> {
    let short = |told: &Value| {
        let extra = &told["extra"];
        let end = extra["choice"].as_str().or(extra["status"].as_str()).unwrap_or_default();
        (told["hook_event_name"].as_str().unwrap().to_owned(), end.to_owned())
    };
    scripts.wait_for("all", count).await.iter().map(short).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(event, end)| ((*event).to_owned(), (*end).to_owned())).collect()
}

/// The id of the last thing of a kind that a stream has shown.
async fn last_id(stream: &mut EventStream, event: &str, field: &str) -> Value {
    let frames = stream.until_idle().await;
    frames.iter().rfind(|frame| frame.event == event).unwrap().data["payload"][field].clone()
}

async fn interrupt(server: &TestServer, session: &str) {
    server.client.event(session, json!({ "type": "user.interrupt" })).await.expect(200);
}

#[tokio::test]
async fn a_tool_that_is_interrupted_has_ended() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let session = free_session(&server).await;
    let mut stream = server.client.stream(&session, "").await;
    server.model.script(runs("sleep 600"));
    server.client.message(&session, "go").await.expect(200);
    stream.until(|frame| frame.event == "agent.tool_use").await;
    interrupt(&server, &session).await;
    assert_eq!(told(&scripts, 2).await, pairs(&[("pre_tool_call", ""), ("post_tool_call", "error")]));
    let [pre, post] = &scripts.recorded("all")[..] else { panic!("two are expected") };
    assert_eq!(pre["extra"]["tool_call_id"], post["extra"]["tool_call_id"]);
    assert!(post["extra"]["error_message"].as_str().unwrap().contains("interrupted"), "{post}");
}

#[tokio::test]
async fn an_approval_that_is_interrupted_or_deleted_is_denied() {
    for deletes in [false, true] {
        let scripts = Scripts::new();
        let server = listening(&scripts).await;
        let session = free_session(&server).await;
        let mut stream = server.client.stream(&session, "").await;
        server.model.script(runs("rm -r build"));
        server.client.message(&session, "go").await.expect(200);
        stream.until_idle().await;
        if deletes {
            server.client.delete(&format!("/v1/sessions/{session}")).await.expect(200);
        } else {
            interrupt(&server, &session).await;
        }
        let expected = [
            ("pre_tool_call", ""),
            ("pre_approval_request", ""),
            ("post_approval_response", "deny"),
            ("post_tool_call", "error"),
        ];
        assert_eq!(told(&scripts, 4).await, pairs(&expected), "deletes: {deletes}");
    }
}

#[tokio::test]
async fn both_sides_of_an_approval_name_the_same_command() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    let mut stream = server.client.stream(&session, "").await;
    let write = json!({ "path": "a", "content": "x" });
    server.model.script([Reply::tool_call("write_file", write), Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    let id = last_id(&mut stream, "agent.tool_use", "id").await;
    let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "allow" });
    server.client.event(&session, answer).await.expect(200);
    stream.until_idle().await;
    told(&scripts, 4).await;
    let all = scripts.recorded("all");
    let of = |event: &str| {
        let found = all.iter().find(|told| told["hook_event_name"] == event);
        let mut extra = found.unwrap()["extra"].as_object().unwrap().clone();
        extra.remove("choice");
        extra
    };
    assert_eq!(of("pre_approval_request"), of("post_approval_response"));
}

#[tokio::test]
async fn a_secret_that_was_supplied_ends_its_call() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let session = free_session(&server).await;
    let mut stream = server.client.stream(&session, "").await;
    let wanted = Reply::tool_call("request_secret", json!({ "name": "TOKEN", "prompt": "Please." }));
    server.model.script([wanted, Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    let id = last_id(&mut stream, "agent.secret_request", "request_id").await;
    let answer = json!({ "type": "user.secret_result", "request_id": id, "value": "hunter2" });
    server.client.event(&session, answer).await.expect(200);
    stream.until_idle().await;
    assert_eq!(told(&scripts, 2).await, pairs(&[("pre_tool_call", ""), ("post_tool_call", "ok")]));
    let text = json!(scripts.recorded("all")).to_string();
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn questions_that_nobody_answers_any_more_have_ended() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let session = server.session_with_custom_tool().await;
    let mut stream = server.client.stream(&session, "").await;
    let call = |nth: u32| ("check_order", json!({ "order_id": nth }));
    server.model.script([Reply::tool_calls([call(1), call(2)]), Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    let id = last_id(&mut stream, "agent.custom_tool_use", "id").await;
    let answer = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": "2" }] });
    server.client.event(&session, answer).await.expect(200);
    server.wait_until_asleep().await;
    let begun = [("pre_tool_call", ""), ("pre_tool_call", ""), ("post_tool_call", "ok")];
    assert_eq!(told(&scripts, 3).await, pairs(&begun), "while the other one is still waited for");
    interrupt(&server, &session).await;
    assert_eq!(told(&scripts, 4).await[3..], pairs(&[("post_tool_call", "error")]));
}

#[tokio::test]
async fn a_call_that_a_stop_of_the_server_cut_off_has_ended() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let session = free_session(&server).await;
    let mut stream = server.client.stream(&session, "").await;
    server.model.script(runs("sleep 600"));
    server.client.message(&session, "go").await.expect(200);
    stream.until(|frame| frame.event == "agent.tool_use").await;
    let server = server.restart().await;
    assert_eq!(told(&scripts, 2).await, pairs(&[("pre_tool_call", ""), ("post_tool_call", "error")]));
    drop(server);
}

#[tokio::test]
async fn a_call_inside_another_that_would_have_to_ask_has_ended() {
    let scripts = Scripts::new();
    let server = listening(&scripts).await;
    let session = free_session(&server).await;
    let mut stream = server.client.stream(&session, "").await;
    let code = "from petasos_tools import terminal\ntry:\n    terminal('rm -r build')\nexcept Exception as e:\n    print(e)";
    server.model.script([Reply::tool_call("execute_code", json!({ "code": code })), Reply::text("Done.")]);
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let expected =
        [("pre_tool_call", ""), ("pre_tool_call", ""), ("post_tool_call", "error"), ("post_tool_call", "ok")];
    assert_eq!(told(&scripts, 4).await, pairs(&expected));
}

#[tokio::test]
async fn the_start_of_a_session_is_told_before_anything_else() {
    let scripts = Scripts::new();
    let note = json!([{ "command": scripts.recorder("all") }]);
    let hooks = json!({ "on_session_start": note, "pre_llm_call": note, "subagent_start": note });
    let server = scripts.server(hooks).await;
    let session = free_session(&server).await;
    let task = json!({ "goal": "look at a" });
    server.model.when("delegate", [Reply::tool_call("delegate_task", task), Reply::text("Done.")]);
    server.model.when("look at a", [Reply::text("Seen.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "delegate it").await.expect(200);
    stream.until_idle().await;
    let told = scripts.wait_for("all", 5).await;
    let names: Vec<&str> = told.iter().map(|told| told["hook_event_name"].as_str().unwrap()).collect();
    let expected = ["on_session_start", "pre_llm_call", "subagent_start", "on_session_start", "pre_llm_call"];
    assert_eq!(names, expected);
}
