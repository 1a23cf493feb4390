//! Pending actions that nobody answers in time.

use std::time::Duration;

use petasos_core::event::ToolEffect;
use petasos_core::limits::Limits;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Frame, Reply, Setup, TestServer};
use serde_json::{Value, json};

const TIME: Duration = Duration::from_millis(1500);

async fn server(action_time: Option<Duration>) -> (TestServer, CountingTool) {
    let tool = CountingTool::new("send_mail", ToolEffect::SideEffect);
    let limits = Limits { action_time, ..Limits::default() };
    let setup = Setup { limits, ..Setup::default() }.with_tool(tool.clone());
    (TestServer::start_with(setup).await, tool)
}

async fn pending(server: &TestServer, session: &str) -> Vec<Value> {
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    shown["pendingActions"].as_array().unwrap().clone()
}

fn expired(frames: &[Frame]) -> Vec<Value> {
    let expired = frames.iter().filter(|frame| frame.event == "session.action_expired");
    expired.map(|frame| frame.data["payload"]["action"].clone()).collect()
}

#[tokio::test]
async fn a_confirmation_that_nobody_gives_is_a_denial() {
    let (server, tool) = server(Some(TIME)).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("send_mail", json!({})), Reply::text("Then not.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("requires_action"));
    let action = pending(&server, &session).await[0].clone();
    let (created, expires) = (&action["createdAt"], &action["expiresAt"]);
    assert!(expires.as_str() > created.as_str(), "{action}");
    let frames = stream.until_idle().await;
    assert_eq!(expired(&frames), [json!("tool_confirmation")]);
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert_eq!(result.text(), "Tool call denied: nobody answered in time");
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    assert_eq!(tool.runs(), 0);
    let late = json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    server.client.event(&session, late).await.expect_error(409, "action_not_pending");
}

#[tokio::test]
async fn questions_and_tools_of_the_application_get_a_result_that_says_so() {
    let (server, _) = server(Some(TIME)).await;
    let tools = json!([{ "type": "agent_toolset" }, { "type": "custom_tool", "name": "check_order" }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    let calls = [
        ("check_order", json!({})),
        ("clarify", json!({ "question": "Which one?" })),
        ("request_secret", json!({ "name": "TOKEN", "prompt": "Please." })),
    ];
    server.model.script([Reply::tool_calls(calls), Reply::text("Nobody is there.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let before = pending(&server, &session).await;
    // An answer to one of them gives the others no more time.
    let answer =
        json!({ "type": "user.clarify_result", "request_id": before[1]["id"], "answer": "The red one." });
    server.client.event(&session, answer).await.expect(200);
    stream.until_idle().await;
    let after = pending(&server, &session).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[0]["expiresAt"], before[0]["expiresAt"]);
    let frames = stream.until_idle().await;
    assert_eq!(expired(&frames), [json!("custom_tool"), json!("secret")]);
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let told = server.model.requests()[1].body["messages"].to_string();
    for words in ["The red one.", "The application did not answer in time", "did not supply it in time"] {
        assert!(told.contains(words), "{words} is missing in {told}");
    }
}

#[tokio::test]
async fn the_time_goes_on_over_a_restart_and_costs_no_task() {
    let (server, _) = server(Some(TIME)).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("send_mail", json!({})), Reply::text("Then not.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let expires_at = pending(&server, &session).await[0]["expiresAt"].clone();
    server.wait_until_asleep().await;
    drop(stream);
    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until(|frame| frame.stop() == Some("end_turn")).await;
    assert_eq!(expired(&frames).len(), 1);
    let expired = frames.iter().find(|frame| frame.event == "session.action_expired").unwrap();
    assert!(expired.data["createdAt"].as_str() >= expires_at.as_str(), "{} {expires_at}", expired.data);
}

#[tokio::test]
async fn without_the_setting_a_turn_waits_for_ever() {
    let (server, _) = server(None).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("send_mail", json!({}))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    assert_eq!(pending(&server, &session).await[0].get("expiresAt"), None);
}

#[tokio::test]
async fn an_application_finds_the_result_in_its_history() {
    let (server, _) = server(Some(TIME)).await;
    let agent = server.agent_with(json!({})).await;
    let weather = json!([{ "name": "get_weather", "description": "", "parameters": { "type": "object" } }]);
    let new = json!({ "agent": { "name": agent }, "tools": weather });
    let created = server.client.post("/aap/sessions", new).await.expect(201);
    let session = created["sessionId"].as_str().unwrap();
    server.model.script([Reply::tool_call("get_weather", json!({})), Reply::text("No idea.")]);
    let mut stream = server.client.stream(session, "").await;
    let turn = json!({ "messages": [{ "role": "user", "content": "Weather?" }] });
    let answer = server.client.post(&format!("/aap/sessions/{session}/turns"), turn).await.expect(200);
    assert_eq!(answer["stopReason"], "tool_use");
    stream.until(|frame| frame.stop() == Some("end_turn")).await;
    let history = server.client.get(&format!("/aap/sessions/{session}/history?type=full")).await.expect(200);
    let messages = history["history"]["full"].as_array().unwrap();
    assert_eq!(messages[2]["role"], "tool");
    assert!(messages[2]["content"].to_string().contains("did not answer in time"), "{history}");
    assert_eq!(messages[3]["content"], "No idea.");
}
