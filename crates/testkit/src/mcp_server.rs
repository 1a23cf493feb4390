//! An MCP server over streamable HTTP, with one tool.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// How it sends its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpAnswers {
    /// As JSON.
    Json,
    /// As an event stream.
    Events,
    /// As an event stream that never gets to the answer of a call.
    EndlessEvents,
    /// As JSON; the answer of a call is 8 MB of it.
    HugeJson,
    /// As JSON; a call is never answered.
    NoAnswer,
    /// Not at all.
    Silence,
}

/// An MCP server over streamable HTTP. Its tool `echo` only looks.
#[derive(Clone)]
pub struct McpServer {
    /// The endpoint.
    pub url: String,
    seen: Seen,
}

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

impl McpServer {
    /// Starts one.
    #[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
    pub async fn start(answers: McpAnswers) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let seen = Seen::default();
        let router = Router::new().route("/mcp", post(answer)).with_state((answers, Arc::clone(&seen)));
        tokio::spawn(async move { axum::serve(listener, router).await });
        McpServer { url, seen }
    }

    /// The values of the header `authorization` and the messages that came, in order.
    pub fn seen(&self) -> Vec<(String, Value)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(
    State((answers, seen)): State<(McpAnswers, Seen)>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let authorization = authorization.unwrap_or_default().to_owned();
    seen.lock().unwrap_or_else(PoisonError::into_inner).push((authorization, message.clone()));
    let is_call = message["method"] == "tools/call";
    let result = match message["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "test", "version": "1" },
        }),
        Some("tools/list") => json!({ "tools": [{
            "name": "echo",
            "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
        }] }),
        Some("tools/call") => {
            json!({ "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] })
        }
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
    let events = [(header::CONTENT_TYPE, "text/event-stream")];
    match answers {
        McpAnswers::HugeJson if is_call => {
            let text = "x".repeat(8 * 1024 * 1024);
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            Json(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result })).into_response()
        }
        McpAnswers::NoAnswer if is_call => std::future::pending().await,
        McpAnswers::Silence => std::future::pending().await,
        McpAnswers::HugeJson | McpAnswers::NoAnswer => Json(reply).into_response(),
        McpAnswers::Json => Json(reply).into_response(),
        McpAnswers::EndlessEvents if is_call => {
            let chunk = bytes::Bytes::from("data: ".to_owned() + &"x".repeat(64 * 1024));
            let endless = futures_util::stream::repeat(Ok::<_, std::convert::Infallible>(chunk));
            (events, axum::body::Body::from_stream(endless)).into_response()
        }
        _ => (events, format!("event: message\ndata: {reply}\n\n")).into_response(),
    }
}
