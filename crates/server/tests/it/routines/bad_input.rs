//! What is wrong with a trigger is said at once, and there is no run.

use bytes::Bytes;
use petasos_net::Method;
use serde_json::{Value, json};

use super::{CALLBACK, refused, runs, start, trigger};

fn people() -> Value {
    json!({ "type": "object", "required": ["people"], "additionalProperties": false, "properties": {
        "people": { "type": "array", "items": { "type": "object", "properties": { "age": { "type": "integer" } } } },
    } })
}

#[tokio::test]
async fn input_that_breaks_its_schema_is_placed() {
    let server = start(json!({ "input_schema": people() })).await;
    let place = async |input: Value| {
        let details = refused(trigger(&server, input).await, 422, "input_validation_failed");
        (details["path"].clone(), details["schema_path"].clone())
    };
    let wrong = json!({ "input": { "people": [{ "age": 1 }, { "age": "old" }] } });
    let (path, schema_path) = place(wrong).await;
    assert_eq!(path, json!(["people", 1, "age"]));
    assert_eq!(schema_path, json!(["properties", "people", "items", "properties", "age", "type"]));
    // No input at all is an empty object.
    assert_eq!(place(json!({})).await, (json!([]), json!(["required"])));
    let (path, schema_path) = place(json!({ "input": { "people": [], "more": 1 } })).await;
    assert_eq!((path, schema_path), (json!([]), json!(["additionalProperties"])));
    assert!(runs(&server).await.is_empty());
}

#[tokio::test]
async fn a_body_that_is_no_trigger_is_refused() {
    let server = start(json!({})).await;
    for body in [
        "",
        "{",
        "[]",
        "null",
        "3",
        "{}",
        r#"{"callback_url":3}"#,
        r#"{"callback_url":null}"#,
        r#"{"callback_url":"https://example.com","input":[]}"#,
        r#"{"callback_url":"https://example.com","input":"x"}"#,
        r#"{"callback_url":"https://example.com","metadata":[]}"#,
        r#"{"callback_url":"https://example.com","session_id":3}"#,
        r#"{"callback_url":"https://example.com","idempotency_key":""}"#,
        r#"{"callback_url":"https://example.com","idempotency_key":7}"#,
        "{\"callback_url\":\"https://example.com\"} x",
    ] {
        let answer = server.client.send(Method::Post, "/routines/kyc/trigger", Some(Bytes::from(body))).await;
        refused(answer, 422, "invalid_request");
    }
    let long = json!({ "callback_url": CALLBACK, "idempotency_key": "x".repeat(256) });
    refused(server.client.post("/routines/kyc/trigger", long).await, 422, "invalid_request");
    assert!(runs(&server).await.is_empty());
}

#[tokio::test]
async fn a_session_that_cannot_be_used_is_refused() {
    let server = start(json!({})).await;
    for session in ["session_gone", "no session", ""] {
        refused(trigger(&server, json!({ "session_id": session })).await, 422, "session_error");
    }
    let session = server.session().await;
    server.client.post(&format!("/v1/sessions/{session}/archive"), json!({})).await.expect(200);
    refused(trigger(&server, json!({ "session_id": session })).await, 422, "session_error");
    assert!(runs(&server).await.is_empty());
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = start(json!({})).await;
    let client = &server.client;
    refused(client.post("/routines/other/trigger", json!({})).await, 404, "not_found");
    refused(client.post("/routines/no%20name/trigger", json!({})).await, 404, "not_found");
    refused(client.get("/runs/run_000000000000000000000000").await, 404, "not_found");
    refused(client.get("/runs/no%20run").await, 404, "not_found");
    refused(client.get("/routines/kyc/runs?limit=0").await, 422, "invalid_request");
    refused(client.get("/routines/kyc/runs?cursor=x").await, 422, "invalid_request");
    refused(server.client_with("").get("/runs/x").await, 401, "unauthorized");
}
