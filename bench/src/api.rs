//! The few requests that prepare a measurement, and the bytes of those that are measured.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::process::KEY;

/// The bytes of a request without a body.
pub(crate) fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {KEY}\r\n{headers}\r\n").into_bytes()
}

/// The bytes of a request with a body.
pub(crate) fn post(path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A message that opens a turn.
pub(crate) fn message() -> Value {
    let text = "Tell me something that takes about two hundred words, please, and no more than that.";
    json!({ "type": "user.message", "content": [{ "type": "text", "text": text }] })
}

/// A connection for requests that are not measured.
pub(crate) struct Api {
    connection: Connection,
}

impl Api {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        Ok(Api { connection: Connection::open(address).await? })
    }

    /// Creates an agent on a model of the stub.
    pub(crate) async fn agent(&mut self, model: &str) -> Result<String> {
        let body =
            json!({ "name": "Bench", "model": format!("openai/{model}"), "instructions": "Be brief." });
        self.create("/v1/agents", &body).await
    }

    /// Creates an agent on a model of the stub, whose tools never ask.
    pub(crate) async fn trusted_agent(&mut self, model: &str) -> Result<String> {
        let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
        let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
        let model = format!("openai/{model}");
        let body = json!({ "name": "Bench", "model": model, "instructions": "Be brief.", "tools": tools });
        self.create("/v1/agents", &body).await
    }

    pub(crate) async fn session(&mut self, agent: &str) -> Result<String> {
        self.create(&format!("/v1/agents/{agent}/sessions"), &json!({})).await
    }

    pub(crate) async fn create(&mut self, path: &str, body: &Value) -> Result<String> {
        let (status, body) = self.connection.exchange(&post(path, body)).await?;
        ensure!(status == 201, "{path} answered {status}: {}", String::from_utf8_lossy(&body));
        let body: Value = serde_json::from_slice(&body)?;
        Ok(body["id"].as_str().context("no id")?.to_owned())
    }
}

/// Creates many sessions, several at a time.
pub(crate) async fn sessions(address: SocketAddr, agent: &str, count: usize) -> Result<Vec<String>> {
    const AT_ONCE: usize = 32;
    let each = |number: usize| {
        let agent = agent.to_owned();
        tokio::spawn(async move {
            let mut api = Api::open(address).await?;
            let mut created = Vec::new();
            for _ in (number..count).step_by(AT_ONCE) {
                created.push(api.session(&agent).await?);
            }
            anyhow::Ok(created)
        })
    };
    let mut all = Vec::with_capacity(count);
    for task in (0..AT_ONCE).map(each).collect::<Vec<_>>() {
        all.extend(task.await??);
    }
    Ok(all)
}
