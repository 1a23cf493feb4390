//! What runs report, where, and what becomes of their sessions then.

use std::time::Duration;

use petasos_testkit::receiver::{Receiver, Reception};
use petasos_testkit::{Gate, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

use super::{
    approved, approved_at, emits, id, put, refused, run, run_until, runs, settled, setup, start, trigger,
    triggered,
};

/// The fields of a callback, in the order of the source document.
const FIELDS: [&str; 13] = [
    "schema_version",
    "run_id",
    "routine_id",
    "status",
    "output",
    "error",
    "session_id",
    "trace_id",
    "started_at",
    "completed_at",
    "metadata",
    "idempotency_key",
    "origin_service",
];

/// Those that have no default.
const REQUIRED: [&str; 6] = ["run_id", "routine_id", "status", "session_id", "started_at", "completed_at"];

async fn schema(server: &TestServer, name: &str) -> jsonschema::Validator {
    let schema = server.client.get(&format!("/schemas/{name}")).await.expect(200);
    jsonschema::draft202012::new(&schema).unwrap()
}

async fn wait_until_gone(server: &TestServer, run: &Value) {
    let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
    within("the session to go", async { while server.client.get(&session).await.status != 404 {} }).await;
}

#[tokio::test]
async fn a_run_reports_once_it_is_settled_and_its_session_goes() {
    let server = start(json!({})).await;
    let receiver = Receiver::start().await;
    let callback = schema(&server, "autonomous-callback-payload.json").await;
    let shown = schema(&server, "run.json").await;
    for (reply, status) in [(approved(), "succeeded"), (emits(json!({})), "failed")] {
        server.model.script([reply]);
        let fields = json!({ "callback_url": receiver.url, "metadata": { "ticket": "OPS-441" } });
        let accepted = trigger(&server, fields).await.expect(202);
        assert!(shown.is_valid(&accepted), "{accepted}");
        let before = receiver.received().len();
        let received = receiver.wait_for(before + 1).await.pop().unwrap();
        let run = run_until(&server, &id(&accepted), |run| run["callback"]["status"] == "delivered").await;
        assert!(shown.is_valid(&run), "{run}");
        let body = received.json();
        let names: Vec<&String> = body.as_object().unwrap().keys().collect();
        assert_eq!(names, FIELDS);
        assert!(callback.is_valid(&body), "{body}");
        assert_eq!(body["status"], status);
        assert!(FIELDS.iter().all(|field| body[field] == run[field]), "{body} {run}");
        assert_eq!(received.header("webhook-id"), id(&run));
        assert!(received.header("authorization").starts_with("Bearer "));
        let delivery = run["callback"]["delivery_id"].as_str().unwrap();
        let delivery = server.client.get(&format!("/deliveries/{delivery}")).await.expect(200);
        assert_eq!((&delivery["kind"], &delivery["run_id"]), (&json!("callback"), &run["run_id"]));
        wait_until_gone(&server, &run).await;
        // The schemas refuse what lacks a field.
        for field in REQUIRED {
            let mut lacking = body.clone();
            lacking.as_object_mut().unwrap().remove(field);
            assert!(!callback.is_valid(&lacking), "{field}");
        }
        // And takes what the protocol has a default for, but nothing that is still under way.
        let mut least = body.clone();
        least.as_object_mut().unwrap().retain(|field, _| REQUIRED.contains(&field.as_str()));
        assert!(callback.is_valid(&least), "{least}");
        least["status"] = json!("running");
        assert!(!callback.is_valid(&least), "{least}");
    }
}

#[tokio::test]
async fn the_schema_of_a_trigger_takes_what_the_server_takes() {
    let server = start(json!({})).await;
    let trigger = schema(&server, "autonomous-trigger-request.json").await;
    assert!(
        trigger.is_valid(&json!({ "callback_url": "https://example.com", "session_id": null, "input": {} }))
    );
    for wrong in [json!({}), json!({ "callback_url": 3 }), json!({ "callback_url": "x", "input": [] })] {
        assert!(!trigger.is_valid(&wrong), "{wrong}");
    }
}

#[tokio::test]
async fn a_callback_survives_a_restart_with_the_same_bytes() {
    let server = start(json!({})).await;
    let receiver = Receiver::start().await;
    receiver.answer("/hook", Reception::Status(500));
    server.model.script([approved()]);
    let run_id = triggered(&server, json!({ "callback_url": receiver.url })).await;
    let run = settled(&server, &run_id).await;
    receiver.wait_for(1).await;
    // The session stays as long as the callback is pending.
    let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
    server.client.get(&session).await.expect(200);
    let server = server.restart().await;
    receiver.answer("/hook", Reception::Status(200));
    run_until(&server, &run_id, |run| run["callback"]["status"] == "delivered").await;
    let received = receiver.received();
    assert!(received.iter().all(|one| one.body == received[0].body && one.header("webhook-id") == run_id));
    wait_until_gone(&server, &run).await;
}

#[tokio::test]
async fn a_callback_that_is_given_up_lets_the_session_go_too() {
    let server = start(json!({})).await;
    let receiver = Receiver::start().await;
    receiver.answer("/hook", Reception::Status(410));
    server.model.script([approved()]);
    let run_id = triggered(&server, json!({ "callback_url": receiver.url })).await;
    let run = run_until(&server, &run_id, |run| run["callback"]["status"] == "dead").await;
    wait_until_gone(&server, &run).await;
    assert_eq!(settled(&server, &run_id).await["output"], json!({ "decision": "approved" }));
}

#[tokio::test]
async fn a_callback_that_was_given_up_never_looks_delivered() {
    let mut setup = setup();
    setup.deliveries.keep = Duration::ZERO;
    let server = TestServer::start_with(setup).await;
    put(&server, json!({})).await;
    let receiver = Receiver::start().await;
    receiver.answer("/gone", Reception::Status(410));
    server.model.script([approved(), approved()]);
    let mut ended = Vec::new();
    for (path, status) in [("/gone", "dead"), ("/hook", "delivered")] {
        let run_id = triggered(&server, json!({ "callback_url": receiver.at(path) })).await;
        ended.push(run_until(&server, &run_id, |run| run["callback"]["status"] == status).await);
    }
    // Old deliveries are removed at the start.
    let server = server.restart().await;
    let forgotten = |run: &Value| run["callback"]["delivery_id"].is_null();
    let delivered = run_until(&server, &id(&ended[1]), forgotten).await;
    assert_eq!(delivered["callback"]["status"], "delivered");
    let given_up = run(&server, &id(&ended[0])).await;
    assert_eq!(given_up["callback"], ended[0]["callback"]);
}

#[tokio::test]
async fn what_a_provider_said_stays_with_who_has_a_key() {
    let server = start(json!({})).await;
    let receiver = Receiver::start().await;
    server.model.script([Reply::status(400)]);
    let run_id = triggered(&server, json!({ "callback_url": receiver.url })).await;
    let received = receiver.wait_for(1).await.pop().unwrap().json();
    let told = "The model and the server did not understand each other.";
    let details = json!({ "reason": "model_bad_request" });
    assert_eq!(received["error"], json!({ "code": "engine_error", "message": told, "details": details }));
    let error = settled(&server, &run_id).await["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("status 400"), "{error}");
    assert_eq!(error["details"], details);
}

#[tokio::test]
async fn cancelled_and_timed_out_runs_report_as_well() {
    let server = start(json!({ "timeout_seconds": 0.2 })).await;
    let receiver = Receiver::start().await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({}))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    // It never starts, since the session waits for somebody.
    let fields = json!({ "callback_url": receiver.url, "session_id": session });
    let run_id = triggered(&server, fields).await;
    let received = receiver.wait_for(1).await.pop().unwrap().json();
    assert_eq!((&received["run_id"], &received["error"]["code"]), (&json!(run_id), &json!("timeout")));
    let gate = Gate::default();
    server.model.script([approved_at(&gate)]);
    server.client.put("/routines/kyc", super::decides(json!({ "timeout_seconds": 60 }))).await.expect(200);
    let run_id = triggered(&server, json!({ "callback_url": receiver.url })).await;
    server.model.wait_for_requests(2).await;
    server.client.post(&format!("/runs/{run_id}/cancel"), json!({})).await.expect(200);
    let received = receiver.wait_for(2).await.pop().unwrap().json();
    assert_eq!(received["error"]["details"]["reason"], "cancelled");
    gate.open();
}

#[tokio::test]
async fn a_callback_goes_only_where_it_may() {
    let server = TestServer::start_with(Setup { delivery_token: Some("out".into()), ..setup() }).await;
    put(&server, json!({})).await;
    for url in [
        "callback",
        "/callback",
        "http://example.com/",
        "https://user:pass@example.com/",
        "https://10.0.0.1/",
        "https://localhost/",
        "https://[::1]/",
        "https://169.254.169.254/latest",
        "ftp://example.com/",
        "https:///x",
        "https:example.com",
        "https://example.com/ ",
        "",
    ] {
        let answer = trigger(&server, json!({ "callback_url": url })).await;
        assert!(answer.body["message"].as_str().unwrap().starts_with("callback_url: "), "{}", answer.body);
        refused(answer, 422, "egress_denied");
    }
    // The routine's own list narrows, and never opens.
    let listed = super::decides(json!({ "callback_url_allowlist": ["hooks.example.com", "10.0.0.1"] }));
    server.client.put("/routines/kyc", listed).await.expect(200);
    for url in [super::CALLBACK, "https://example.com/", "https://10.0.0.1/"] {
        refused(trigger(&server, json!({ "callback_url": url })).await, 422, "egress_denied");
    }
    trigger(&server, json!({ "callback_url": "https://hooks.example.com/x" })).await.expect(202);
    assert_eq!(runs(&server).await.len(), 1);
    let scheduled = json!({ "schedule": { "cron": "0 0 1 1 *", "callback_url": "https://10.0.0.1/" } });
    refused(server.client.put("/routines/other", super::decides(scheduled)).await, 422, "egress_denied");
}
