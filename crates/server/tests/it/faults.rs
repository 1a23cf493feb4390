//! Peers that fail, and servers that stop: a clear reason, nothing lost, nothing twice.

use std::time::Duration;

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, Setup, TestServer};
use serde_json::json;

/// Runs one turn that must fail, and one that must not.
async fn fails_with(server: &TestServer, model: &str, code: &str, says: &str) {
    let agent = server.agent_with(json!({ "model": model })).await;
    let session = server.client.session(&agent).await;
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let reason = &frames.last().unwrap().data["payload"]["stop_reason"];
    assert_eq!((reason["type"].as_str(), reason["code"].as_str()), (Some("error"), Some(code)), "{reason}");
    assert!(reason["message"].as_str().unwrap().contains(says), "{reason}");
    assert!(!reason.to_string().contains("sk-test"), "keys stay out of errors");
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["stopReason"]), (&json!("idle"), reason));

    server.client.message(&session, "again").await.expect(200);
    stream.until_idle().await;
}

#[tokio::test]
async fn a_model_that_cannot_be_reached() {
    let server = TestServer::start().await;
    fails_with(&server, "nobody/model", "model_unreachable", "attempts").await;
}

#[tokio::test]
async fn a_model_that_nobody_configured() {
    let server = TestServer::start().await;
    fails_with(&server, "unheard/of", "model_unknown_provider", "config.yaml").await;
}

#[tokio::test]
async fn a_model_that_lies_about_its_format() {
    let server = TestServer::start().await;
    server.model.script([Reply::raw("<html>Sorry</html>", "text/html"), Reply::text("Fine.")]);
    fails_with(&server, "openai/m", "model_bad_response", "").await;
}

#[tokio::test]
async fn a_model_that_refuses_the_key() {
    let server = TestServer::start().await;
    server.model.script([Reply::status(401), Reply::text("Fine.")]);
    fails_with(&server, "anthropic/m", "model_unauthorized", "").await;
}

#[tokio::test]
async fn a_model_that_is_always_overloaded() {
    let server = TestServer::start().await;
    server.model.script((0..4).map(|_| Reply::status(529)));
    fails_with(&server, "anthropic/m", "model_overloaded", "attempts").await;
}

#[tokio::test]
async fn a_model_that_goes_silent() {
    let mut setup = Setup::default();
    setup.models.first_byte_timeout = Duration::from_millis(100);
    setup.models.stall_timeout = Duration::from_millis(100);
    setup.models.retry.max_attempts = 1;
    let server = TestServer::start_with(setup).await;
    server.model.script([Reply::text("Well, let me").stall_after_chunks(1), Reply::text("Fine.")]);
    fails_with(&server, "openai/m", "model_timeout", "").await;
}

#[tokio::test]
async fn a_model_that_hangs_up_is_asked_again() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([
        Reply::status(429).header("retry-after", "0"),
        Reply::text("Half").cut_after_chunks(1),
        Reply::text("Whole."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
    assert_eq!(shown["messages"][1]["content"], "Whole.");
}

#[tokio::test]
async fn a_turn_that_was_cut_off_goes_on_without_a_client() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("Half of").gate(&gate), Reply::text("The whole answer.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until(|frame| frame.is_delta()).await;
    let before = server.client.events(&session).await;

    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until_idle().await;
    let listed = server.client.events(&session).await;
    assert_eq!(listed[..before.len()], before, "what was acknowledged is still there");
    let said: Vec<_> =
        frames.iter().filter(|frame| frame.event == "agent.message" && !frame.is_delta()).collect();
    assert_eq!(said.len(), 1, "nothing is said twice");
    assert_eq!(said[0].text(), "The whole answer.");
    if let Some(delta) = frames.iter().find(|frame| frame.is_delta()) {
        assert_eq!(delta.data["payload"]["reset"], true, "what an earlier stream showed is taken back");
    }
}

#[tokio::test]
async fn a_tool_with_side_effects_is_not_run_again_after_a_restart() {
    let writes = CountingTool::new("write_note", ToolEffect::SideEffect).held_up();
    let reads = CountingTool::new("read_note", ToolEffect::ReadOnly).held_up();
    let setup = Setup::default().with_tool(writes.clone()).with_tool(reads.clone());
    let server = TestServer::start_with(setup).await;
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": "always_allow" } } }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    let calls = [("write_note", json!({})), ("read_note", json!({ "text": "milk" }))];
    server.model.script([Reply::tool_calls(calls), Reply::text("I will check.")]);
    server.client.message(&session, "go").await.expect(200);
    writes.wait_for_start().await;
    reads.wait_for_start().await;

    let server = server.restart().await;
    reads.wait_for_start().await;
    reads.let_one_finish();
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until_idle().await;
    assert_eq!((writes.runs(), reads.runs()), (1, 2));
    let results: Vec<_> = frames.iter().filter(|frame| frame.event == "agent.tool_result").collect();
    assert_eq!(results.len(), 2);
    assert!(results.iter().any(|frame| frame.text().contains("outcome is unknown")));
    assert!(results.iter().any(|frame| frame.text() == "milk"));
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_tool_that_never_ends_is_stopped() {
    let tool = CountingTool::new("slow", ToolEffect::ReadOnly).held_up();
    let setup = Setup { tool_time: Duration::from_millis(50), ..Setup::default().with_tool(tool) };
    let server = TestServer::start_with(setup).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("slow", json!({})), Reply::text("Never mind.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert_eq!(result.data["payload"]["is_error"], true);
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_full_store_refuses_writes_clearly_and_keeps_what_it_has() {
    let server = TestServer::start_with(Setup { max_store_bytes: Some(600_000), ..Setup::default() }).await;
    let session = server.session().await;
    let steer = json!({ "type": "user.steer", "message": "x".repeat(20_000) });
    let mut accepted = 0;
    let refused = loop {
        let answer = server.client.event(&session, steer.clone()).await;
        if answer.status != 200 {
            break answer;
        }
        accepted += 1;
        assert!(accepted < 100, "the bound is not kept");
    };
    refused.expect_error(507, "store_full");
    assert_eq!(server.client.events(&session).await.len(), accepted);
    let server = server.restart().await;
    assert_eq!(server.client.events(&session).await.len(), accepted);
}
