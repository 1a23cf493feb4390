//! Idempotency keys: one run for each.

use futures_util::future::join_all;
use petasos_testkit::Gate;
use serde_json::json;

use super::{approved, approved_at, id, refused, runs, settled, start, trigger, triggered};

#[tokio::test]
async fn many_triggers_with_one_key_are_one_run() {
    let server = start(json!({})).await;
    let gate = Gate::default();
    server.model.script([approved_at(&gate)]);
    let body = json!({ "idempotency_key": "k-1", "input": { "n": 1 } });
    let answers = join_all((0..20).map(|_| trigger(&server, body.clone()))).await;
    let accepted = answers.iter().filter(|answer| answer.status == 202).count();
    assert_eq!(accepted, 1);
    assert!(answers.iter().all(|answer| answer.status == 202 || answer.status == 200));
    let ids: std::collections::BTreeSet<String> = answers.iter().map(|answer| id(&answer.body)).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(runs(&server).await.len(), 1);
    gate.open();
    // A replay shows the run as it is by then.
    let run = settled(&server, ids.first().unwrap()).await;
    let again = trigger(&server, body).await.expect(200);
    assert_eq!((&again["status"], &again["output"]), (&run["status"], &run["output"]));
    assert_eq!(server.model.requests().len(), 1);
}

#[tokio::test]
async fn another_body_under_the_same_key_is_a_mistake() {
    let server = start(json!({ "input_schema": { "type": "object", "required": ["n"] } })).await;
    server.model.respond(|_| approved());
    let body = json!({ "idempotency_key": "k-1", "input": { "n": { "a": 1, "b": 2 } } });
    let run_id = triggered(&server, body.clone()).await;
    settled(&server, &run_id).await;
    // The order of keys makes no difference, everything else does.
    let turned = json!({ "input": { "n": { "b": 2, "a": 1 } }, "idempotency_key": "k-1" });
    trigger(&server, turned).await.expect(200);
    for other in [
        json!({ "idempotency_key": "k-1", "input": { "n": 2 } }),
        json!({ "idempotency_key": "k-1", "input": { "n": { "a": 1, "b": 2 } }, "metadata": { "x": 1 } }),
        // Also if it could not be used anyway.
        json!({ "idempotency_key": "k-1", "input": {} }),
    ] {
        let details = refused(trigger(&server, other).await, 422, "idempotency_key_reused");
        assert_eq!(details["run_id"], json!(run_id));
    }
    // It is a key of this routine.
    server.client.put("/routines/other", super::decides(json!({}))).await.expect(201);
    let body = json!({ "idempotency_key": "k-1", "callback_url": super::CALLBACK });
    server.client.post("/routines/other/trigger", body).await.expect(202);
    assert_eq!(runs(&server).await.len(), 1);
}

#[tokio::test]
async fn a_run_that_failed_is_returned_too_and_keys_outlive_restarts() {
    let server = start(json!({})).await;
    server.model.script([super::emits(json!({}))]);
    let body = json!({ "idempotency_key": "k-1" });
    let run_id = triggered(&server, body.clone()).await;
    settled(&server, &run_id).await;
    let server = server.restart().await;
    let again = trigger(&server, body).await.expect(200);
    assert_eq!((id(&again), &again["status"]), (run_id, &json!("failed")));
}

#[tokio::test]
async fn keys_of_scheduled_runs_are_theirs_alone() {
    let server = start(json!({})).await;
    let body = json!({ "idempotency_key": "schedule:2030-01-01T00:00:00+00:00" });
    let details = refused(trigger(&server, body).await, 422, "invalid_request");
    assert_eq!(details["field"], "idempotency_key");
    assert!(runs(&server).await.is_empty());
}
