//! Runs survive restarts in each of their states.

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, TestServer, within};
use serde_json::json;

use super::{approved, approved_at, failure, put, run, settled, start, triggered};

#[tokio::test]
async fn a_run_whose_model_was_thinking_goes_on() {
    let server = start(json!({})).await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate), approved()]);
    let run_id = triggered(&server, json!({})).await;
    server.model.wait_for_requests(1).await;
    let server = server.restart().await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
}

#[tokio::test]
async fn a_run_whose_tool_was_running_goes_on() {
    let tool = CountingTool::new("look", ToolEffect::ReadOnly).held_up();
    let server = TestServer::start_with(super::setup().with_tool(tool.clone())).await;
    put(&server, json!({})).await;
    server.model.script([Reply::tool_call("look", json!({})), approved()]);
    let run_id = triggered(&server, json!({})).await;
    within("the tool", tool.wait_for_start()).await;
    let server = server.restart().await;
    within("the tool", tool.wait_for_start()).await;
    tool.let_one_finish();
    assert_eq!(settled(&server, &run_id).await["output"], json!({ "decision": "approved" }));
}

#[tokio::test]
async fn a_deadline_that_passed_while_nobody_was_there_is_kept() {
    let server = start(json!({ "timeout_seconds": 0.3 })).await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate), approved_at(&gate)]);
    let run_id = triggered(&server, json!({})).await;
    server.model.wait_for_requests(1).await;
    // However long the restart takes, the deadline is the one from before.
    let server = server.restart().await;
    assert_eq!(failure(&server, &run_id).await["code"], "timeout");
}

#[tokio::test]
async fn a_settled_run_stays_as_it_is() {
    let server = start(json!({})).await;
    server.model.script([approved()]);
    let run_id = triggered(&server, json!({})).await;
    let before = settled(&server, &run_id).await;
    let server = server.restart().await;
    let after = run(&server, &run_id).await;
    for field in ["status", "output", "error", "started_at", "completed_at", "session_id", "metadata"] {
        assert_eq!(before[field], after[field]);
    }
    assert_eq!(server.model.requests().len(), 1);
}
