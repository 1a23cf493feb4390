//! Addresses that are asked.

use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Json, Router};
use petasos_net::webhook::Signer;
use serde_json::{Value, json};

use super::world::{Scripts, free_session, result, runs, turn};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[derive(Clone, Default)]
struct Receiver {
    got: Arc<Mutex<Vec<(HeaderMap, String)>>>,
}

async fn receive(
    State(receiver): State<Receiver>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, Json<Value>) {
    let blocks = body.contains("forbidden");
    let fails = body.contains("outage");
    receiver.got.lock().unwrap().push((headers, body));
    let answer = json!({ "decision": "block", "reason": "forbidden" });
    match (fails, blocks) {
        (true, _) => (StatusCode::BAD_GATEWAY, Json(answer)),
        (false, true) => (StatusCode::OK, Json(answer)),
        (false, false) => (StatusCode::OK, Json(json!({}))),
    }
}

impl Receiver {
    async fn start() -> (Self, String) {
        let receiver = Receiver::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let router = Router::new().route("/hook", post(receive)).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (receiver, url)
    }
}

#[tokio::test]
async fn it_gets_the_payload_signed_and_its_answer_counts() {
    let scripts = Scripts::new();
    let (receiver, url) = Receiver::start().await;
    let hook = json!({ "url": url, "secret": SECRET, "fail_closed": true });
    let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
    let session = free_session(&server).await;
    for (command, expected) in
        [("echo ok", None), ("echo forbidden", Some("forbidden")), ("echo outage", Some("502"))]
    {
        server.model.script(runs(command));
        let (text, is_error) = result(&turn(&server, &session, "go").await);
        assert_eq!(is_error, expected.is_some(), "{text}");
        assert!(text.contains(expected.unwrap_or_default()), "{text}");
    }
    let got = receiver.got.lock().unwrap().clone();
    let signer: Signer = SECRET.parse().unwrap();
    for (headers, body) in &got {
        let header = |name: &str| headers[name].to_str().unwrap();
        let time = header("webhook-timestamp").parse().unwrap();
        let signature = signer.sign(header("webhook-id"), time, body.as_bytes());
        assert_eq!(header("webhook-signature"), signature);
        let payload: Value = serde_json::from_str(body).unwrap();
        assert_eq!(
            (&payload["hook_event_name"], &payload["tool_name"]),
            (&json!("pre_tool_call"), &json!("terminal"))
        );
    }
    assert_eq!(got.len(), 3);
}

#[tokio::test]
async fn a_private_address_is_not_reached() {
    let scripts = Scripts::new();
    let hook = json!({ "url": "http://10.0.0.1/hook", "fail_closed": true });
    let server = scripts.server(json!({ "pre_tool_call": [hook] })).await;
    let session = free_session(&server).await;
    server.model.script(runs("true"));
    let (text, is_error) = result(&turn(&server, &session, "go").await);
    assert!(is_error && text == "blocked: http://10.0.0.1/hook is not available", "{text}");
}
