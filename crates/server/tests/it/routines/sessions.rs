//! Runs that are turns of a session of the caller's.

use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Gate, Reply, TestServer, within};
use serde_json::json;

use super::{approved, decides, emits, refused, run, run_until, settled, start, trigger, triggered};

#[tokio::test]
async fn a_run_in_a_session_is_a_turn_of_it_and_the_session_stays() {
    let server = start(json!({})).await;
    let agent = server.agent_with(json!({ "instructions": "You are Iris." })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::text("Hello."), approved(), Reply::text("I approved it.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "Hello, Iris.").await.expect(200);
    stream.until_idle().await;
    let run_id = triggered(&server, json!({ "session_id": session, "input": { "n": 1 } })).await;
    let run = settled(&server, &run_id).await;
    assert_eq!((&run["status"], &run["session_id"]), (&json!("succeeded"), &json!(session)));
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    // The session's own agent did it, and knows what was said before.
    let request = &server.model.requests()[1];
    let read = request.body["messages"].to_string();
    assert!(
        read.contains("You are Iris.") && read.contains("Hello, Iris.") && !read.contains("Be fair."),
        "{read}"
    );
    server.wait_until_asleep().await;
    // What follows is a turn like any other, and remembers the run.
    server.client.message(&session, "What did you do?").await.expect(200);
    stream.until_idle().await;
    let request = &server.model.requests()[2];
    assert!(!request.body["tools"].to_string().contains("emit_output"));
    assert!(!request.body["messages"][0].to_string().contains("Decide whether"));
    assert!(request.body["messages"].to_string().contains("approved"));
}

#[tokio::test]
async fn a_run_waits_until_its_session_is_free_over_restarts_too() {
    let server = start(json!({})).await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({}))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let call = frames.iter().find(|frame| frame.event == "agent.custom_tool_use").unwrap();
    let call_id = call.data["payload"]["id"].clone();
    let first = triggered(&server, json!({ "session_id": session })).await;
    let second = triggered(&server, json!({ "session_id": session })).await;
    server.wait_until_asleep().await;
    assert_eq!(run(&server, &first).await["status"], "accepted");

    let server = server.restart().await;
    server.wait_until_asleep().await;
    assert_eq!(run(&server, &first).await["status"], "accepted");
    let gate = Gate::default();
    server.model.script([Reply::text("Shipped."), super::approved_at(&gate), approved()]);
    let result = json!({ "type": "user.custom_tool_result", "tool_use_id": call_id, "content": [{ "type": "text", "text": "shipped" }] });
    server.client.event(&session, result).await.expect(200);
    run_until(&server, &first, |run| run["status"] == "running").await;
    assert_eq!(run(&server, &second).await["status"], "accepted");
    gate.open();
    for run_id in [first, second] {
        assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
    }
    assert_eq!(server.model.requests().len(), 4);
}

#[tokio::test]
async fn a_run_that_waits_in_vain_times_out() {
    let server = start(json!({ "timeout_seconds": 0.2 })).await;
    let session = server.session().await;
    let gate = Gate::default();
    server.model.script([Reply::text("Hm.").gate(&gate)]);
    server.client.message(&session, "go").await.expect(200);
    server.model.wait_for_requests(1).await;
    let run_id = triggered(&server, json!({ "session_id": session })).await;
    let failed = settled(&server, &run_id).await;
    assert_eq!(failed["error"]["code"], "timeout");
    assert!(failed["started_at"].is_string() && failed["completed_at"].is_string());
    gate.open();
    server.wait_until_asleep().await;
    // It does not start any more.
    assert_eq!(server.model.requests().len(), 1);
    assert_eq!(run(&server, &run_id).await["error"]["code"], "timeout");
    let waiting = trigger(&server, json!({ "session_id": session })).await.expect(202);
    assert_eq!(waiting["session_id"], json!(session));
}

#[tokio::test]
async fn a_run_waits_while_a_person_answers_and_starts_when_the_agent_is_back() {
    let server = start(json!({})).await;
    let agent = server.agent_with(json!({})).await;
    let body = json!({ "agent_id": agent });
    let session = server.client.post("/conversation/sessions", body).await.expect(201);
    let path = format!("/conversation/sessions/{}", session["id"].as_str().unwrap());
    server.client.patch(&path, json!({ "mode": "manual" })).await.expect(200);
    let run_id = triggered(&server, json!({ "session_id": session["id"], "input": { "n": 1 } })).await;
    server.wait_until_asleep().await;
    assert_eq!(run(&server, &run_id).await["status"], "accepted");
    let server = server.restart().await;
    server.wait_until_asleep().await;
    assert!(server.model.requests().is_empty(), "the agent stays silent");
    server.model.script([approved()]);
    server.client.patch(&path, json!({ "mode": "auto" })).await.expect(200);
    assert_eq!(settled(&server, &run_id).await["status"], "succeeded");
}

#[tokio::test]
async fn the_customer_hears_how_a_run_failed_and_nothing_that_others_wrote() {
    let server = start(json!({ "on_tool_error": "fail", "max_engine_iterations": 1 })).await;
    for (reply, told) in [
        (emits(json!({ "decision": "10.0.0.1" })), "The output of the run does not fit its schema."),
        (Reply::tool_call("read_file", json!({ "path": "10.0.0.1" })), "A tool of the run failed."),
        (Reply::text("Hm."), "The run made all the model calls that it may, and has no output."),
        (Reply::status(401), "The model's provider does not accept the server's key."),
    ] {
        server.model.script([reply]);
        assert_eq!(error_detail(&server).await, told);
    }
    let hasty = super::decides(json!({ "timeout_seconds": 0.2 }));
    server.client.put("/routines/kyc", hasty).await.expect(200);
    let gate = Gate::default();
    server.model.script([super::approved_at(&gate)]);
    assert_eq!(error_detail(&server).await, "The run took longer than it may.");
    gate.open();
}

/// What is said in the session of a run that fails.
async fn error_detail(server: &TestServer) -> String {
    let session = server.session().await;
    let run_id = triggered(server, json!({ "session_id": session })).await;
    super::failure(server, &run_id).await;
    server.wait_until_asleep().await;
    let path = format!("/conversation/sessions/{session}/events?kinds=status&wait_for_data=0");
    let events = server.client.get(&path).await.expect(200);
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!(last["status"], "error", "{last}");
    last["error_detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_person_who_takes_over_ends_the_run_under_way() {
    let server = start(json!({})).await;
    let agent = server.agent_with(json!({})).await;
    let body = json!({ "agent_id": agent });
    let session = server.client.post("/conversation/sessions", body).await.expect(201);
    let gate = Gate::default();
    server.model.script([super::approved_at(&gate)]);
    let run_id = triggered(&server, json!({ "session_id": session["id"] })).await;
    server.model.wait_for_requests(1).await;
    let path = format!("/conversation/sessions/{}", session["id"].as_str().unwrap());
    server.client.patch(&path, json!({ "mode": "manual" })).await.expect(200);
    let failed = settled(&server, &run_id).await;
    gate.open();
    assert_eq!(failed["error"]["code"], "engine_error");
}

#[tokio::test]
async fn a_run_without_a_session_has_a_customer_that_goes_with_it() {
    let server = start(json!({})).await;
    let receiver = Receiver::start().await;
    let gate = Gate::default();
    server.model.script([super::approved_at(&gate)]);
    let accepted = trigger(&server, json!({ "callback_url": receiver.at("/done") })).await.expect(202);
    let session = format!("/conversation/sessions/{}", accepted["session_id"].as_str().unwrap());
    server.model.wait_for_requests(1).await;
    let opened = server.client.get(&session).await.expect(200);
    let customer = format!("/conversation/customers/{}", opened["customer_id"].as_str().unwrap());
    let known = server.client.get(&customer).await.expect(200);
    assert_eq!((&known["id"], &known["name"]), (&accepted["run_id"], &json!("KYC decision")));
    // Nothing is kept for somebody who does not come back.
    assert!(!server.model.requests()[0].body["tools"].to_string().contains("memory"));
    gate.open();
    receiver.wait_for(1).await;
    within("the session and its customer to go", async {
        while server.client.get(&session).await.status != 404
            || server.client.get(&customer).await.status != 404
        {}
    })
    .await;
    assert_eq!(run(&server, accepted["run_id"].as_str().unwrap()).await["status"], "succeeded");
}

#[tokio::test]
async fn a_run_is_also_found_under_its_routine() {
    let server = start(json!({})).await;
    server.model.script([approved()]);
    let run_id = triggered(&server, json!({})).await;
    let run = run_until(&server, &run_id, |run| run["status"] == "succeeded").await;
    let of = |routine: &str, run: &str| format!("/routines/{routine}/runs/{run}");
    assert_eq!(server.client.get(&of("kyc", &run_id)).await.expect(200)["output"], run["output"]);
    server.client.put("/routines/other", decides(json!({}))).await.expect(201);
    refused(server.client.get(&of("other", &run_id)).await, 404, "not_found");
    refused(server.client.get(&of("nobody", &run_id)).await, 404, "not_found");
    refused(server.client.get(&of("kyc", "run_none")).await, 404, "not_found");
}
