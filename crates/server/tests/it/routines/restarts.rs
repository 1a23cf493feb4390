//! Runs survive restarts in each of their states, and clients that go away.

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, TestServer, within};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

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

#[tokio::test]
async fn a_run_goes_on_whose_client_went_away() {
    let server = start(json!({})).await;
    server.model.respond(|_| approved());
    let mut ids = std::collections::BTreeSet::new();
    for number in 0..40 {
        let body = json!({ "callback_url": super::CALLBACK, "idempotency_key": format!("k-{number}") });
        ask_and_leave(&server, &body.to_string()).await;
        // Whether or not it was read before its client left, there is one run now.
        ids.insert(triggered_or_known(&server, &format!("k-{number}")).await);
    }
    assert_eq!(ids.len(), 40);
    for run_id in ids {
        assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    }
}

async fn triggered_or_known(server: &TestServer, key: &str) -> String {
    super::id(&super::trigger(server, json!({ "idempotency_key": key })).await.body)
}

/// Sends a trigger, and hangs up without waiting for the answer.
#[expect(clippy::disallowed_methods, reason = "this speaks raw HTTP")]
async fn ask_and_leave(server: &TestServer, body: &str) {
    let mut stream = TcpStream::connect(server.url.strip_prefix("http://").unwrap()).await.unwrap();
    let head = "POST /routines/kyc/trigger HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    let key = "authorization: Bearer pk_admin_key_of_tests\r\n";
    let request = format!("{head}{key}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
}
