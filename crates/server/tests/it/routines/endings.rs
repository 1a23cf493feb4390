//! How runs end: each code of a failure, and each settled once.

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, TestServer, within};
use serde_json::{Value, json};

use super::{approved, approved_at, emits, failure, put, refused, run, run_until, settled, start, triggered};

#[tokio::test]
async fn output_that_breaks_its_schema_fails_the_run() {
    let server = start(json!({})).await;
    for (output, path, schema_path) in [
        (json!({}), json!([]), json!(["required"])),
        (json!({ "decision": "maybe" }), json!(["decision"]), json!(["properties", "decision", "enum"])),
        (json!({ "decision": "approved", "x": 1 }), json!([]), json!(["additionalProperties"])),
    ] {
        server.model.script([emits(output)]);
        let run_id = triggered(&server, json!({})).await;
        let error = failure(&server, &run_id).await;
        assert_eq!(error["code"], "output_validation_failed");
        assert_eq!(error["details"], json!({ "path": path, "schema_path": schema_path }));
    }
}

#[tokio::test]
async fn output_that_cannot_be_read_may_be_corrected() {
    let server = start(json!({})).await;
    server.model.script([
        Reply::tool_call("emit_output", json!({ "decision": "approved" })),
        Reply::tool_call("emit_output", json!({ "output_json": "{\"decision\":" })),
        Reply::tool_call("emit_output", Value::String("{\"output\":".into())),
        Reply::tool_call("emit_output", json!({ "output_json": "{\"decision\":\"approved\"}" })),
    ]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["output"], json!({ "decision": "approved" }));
    let requests = server.model.requests();
    let told = requests[3].body["messages"].to_string();
    assert_eq!(told.matches(r#"{\"ok\":false,\"error\":"#).count(), 3, "{told}");
}

#[tokio::test]
async fn output_that_is_said_twice_is_said() {
    let server = start(json!({})).await;
    for repeated in [json!(""), json!("{\"decision\": \"approved\"}")] {
        let both = json!({ "output": { "decision": "approved" }, "output_json": repeated });
        server.model.script([Reply::tool_call("emit_output", both)]);
        let run_id = triggered(&server, json!({})).await;
        assert_eq!(settled(&server, &run_id).await["output"], json!({ "decision": "approved" }));
    }
}

#[tokio::test]
async fn what_a_schema_requires_it_allows() {
    let server = start(json!({ "output_schema": { "type": "object", "required": ["decision"] } })).await;
    server.model.script([approved(), emits(json!({ "decision": 1, "x": 1 }))]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["output"], json!({ "decision": "approved" }));
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(failure(&server, &run_id).await["details"]["schema_path"], json!(["additionalProperties"]));
}

#[tokio::test]
async fn a_reply_without_a_call_is_reminded_and_counts() {
    let server = start(json!({ "max_engine_iterations": 3 })).await;
    server.model.script([Reply::text("Let me think."), approved()]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    assert!(server.model.requests()[1].last_user_text().contains("emit_output"));
    server.model.script([Reply::text("Hm."), Reply::text("Hm."), Reply::text("Hm."), approved()]);
    let run_id = triggered(&server, json!({})).await;
    let error = failure(&server, &run_id).await;
    assert_eq!(error["code"], "max_engine_iterations_reached");
    assert_eq!(server.model.requests().len(), 5);
}

#[tokio::test]
async fn a_model_that_cannot_be_called_is_an_engine_error() {
    let server = start(json!({})).await;
    server.model.respond(|_| Reply::status(400));
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(failure(&server, &run_id).await["code"], "engine_error");
}

#[tokio::test]
async fn a_tool_that_fails_fails_the_run_if_the_routine_says_so() {
    let server = TestServer::start_with(super::setup()).await;
    put(&server, json!({ "on_tool_error": "fail" })).await;
    let fails = || Reply::tool_call("read_file", json!({ "path": "nowhere.txt" }));
    server.model.script([fails()]);
    let run_id = triggered(&server, json!({})).await;
    let error = failure(&server, &run_id).await;
    assert_eq!(
        (&error["code"], &error["details"]["tool_id"]),
        (&json!("tool_error"), &json!("built-in:read_file"))
    );
    let changed = super::decides(json!({ "on_tool_error": "continue" }));
    server.client.put("/routines/kyc", changed).await.expect(200);
    server.model.script([fails(), approved()]);
    let run_id = triggered(&server, json!({})).await;
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
}

#[tokio::test]
async fn a_run_that_takes_too_long_times_out_and_what_the_model_says_later_is_dropped() {
    let server = start(json!({ "timeout_seconds": 0.2 })).await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate)]);
    let run_id = triggered(&server, json!({})).await;
    let error = failure(&server, &run_id).await;
    assert_eq!((&error["code"], &error["details"]), (&json!("timeout"), &json!({ "timeout_seconds": 0.2 })));
    gate.open();
    server.wait_until_asleep().await;
    assert_eq!(run(&server, &run_id).await["error"], error);
}

/// Whichever comes first wins, and the other changes nothing.
#[tokio::test]
async fn a_deadline_and_an_output_settle_a_run_once() {
    let server = start(json!({ "timeout_seconds": 0.03 })).await;
    let mut ends = std::collections::BTreeMap::new();
    for _ in 0..40 {
        let gate = Gate::default();
        server.model.script([approved_at(&gate)]);
        let run_id = triggered(&server, json!({})).await;
        let settling = settled(&server, &run_id);
        let opening = async {
            run_until(&server, &run_id, |run| run["status"] != "accepted").await;
            gate.open();
        };
        let (run, ()) = tokio::join!(settling, opening);
        // Nothing changes any more.
        server.wait_until_asleep().await;
        let later = super::run(&server, &run_id).await;
        let fields = ["status", "output", "error", "completed_at"];
        assert!(fields.iter().all(|field| run[field] == later[field]), "{run} {later}");
        *ends.entry(run["status"].to_string()).or_insert(0) += 1;
    }
    assert_eq!(ends.values().sum::<i32>(), 40, "{ends:?}");
}

#[tokio::test]
async fn a_run_can_be_cancelled_once() {
    let tool = CountingTool::new("look", ToolEffect::ReadOnly).held_up();
    let server = TestServer::start_with(super::setup().with_tool(tool.clone())).await;
    put(&server, json!({})).await;
    server.model.script([Reply::tool_call("look", json!({}))]);
    let run_id = triggered(&server, json!({})).await;
    within("the tool", tool.wait_for_start()).await;
    let path = format!("/runs/{run_id}/cancel");
    let cancelled = server.client.post(&path, json!({})).await.expect(200);
    assert_eq!(
        (&cancelled["status"], &cancelled["error"]["code"]),
        (&json!("failed"), &json!("engine_error"))
    );
    assert_eq!(cancelled["error"]["details"]["reason"], "cancelled");
    refused(server.client.post(&path, json!({})).await, 409, "conflict");
    server.wait_until_asleep().await;
}

#[tokio::test]
async fn a_session_that_is_deleted_takes_its_runs_with_it() {
    let server = start(json!({})).await;
    let session = server.session().await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate)]);
    let running = triggered(&server, json!({ "session_id": session })).await;
    server.model.wait_for_requests(1).await;
    let waiting = triggered(&server, json!({ "session_id": session })).await;
    server.client.delete(&format!("/v1/sessions/{session}")).await.expect(200);
    for run_id in [running, waiting] {
        assert_eq!(failure(&server, &run_id).await["code"], "session_error");
    }
    gate.open();
}

#[tokio::test]
async fn a_user_who_interrupts_the_turn_ends_the_run() {
    let server = start(json!({})).await;
    let session = server.session().await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate)]);
    let run_id = triggered(&server, json!({ "session_id": session })).await;
    server.model.wait_for_requests(1).await;
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    let error = failure(&server, &run_id).await;
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("engine_error"), &json!("interrupted"))
    );
    gate.open();
}
