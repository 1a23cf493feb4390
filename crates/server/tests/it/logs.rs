//! What the log says about requests and turns.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use petasos_testkit::{Reply, TestServer};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Keeps the lines of this thread, on which a test runs with its server.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    /// The lines of a level that hold a text.
    fn with(&self, level: &str, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.starts_with(level) && line.contains(text)).cloned().collect()
    }
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("petasos")
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn every_request_has_a_line_with_its_id() {
    let lines = Lines::default();
    let _logging = tracing::subscriber::set_default(lines.clone());
    let server = TestServer::start().await;
    let client = server.client.with_header("x-request-id", "mine-1");
    client.get("/v1/sessions/session_secret").await.expect(404);
    let found = lines.with("DEBUG", "request_id=\"mine-1\"");
    assert_eq!(found.len(), 1, "{found:?}");
    for part in ["method=\"GET\"", "path=\"/v1/sessions/{sessionId}\"", "status=404", "ms="] {
        assert!(found[0].contains(part), "{part} is missing in {found:?}");
    }
    assert!(!found[0].contains("session_secret"), "{found:?}");
}

#[tokio::test]
async fn a_turn_that_fails_is_named_without_what_was_said() {
    let lines = Lines::default();
    let _logging = tracing::subscriber::set_default(lines.clone());
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({ "model": "made-up/model" })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::text("Never.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "my secret plan").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("error"));
    let found = lines.with("WARN", "a turn ended with an error");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(&session) && found[0].contains("code=\""), "{found:?}");
    assert_eq!(lines.with("", "my secret plan"), Vec::<String>::new());
}

#[tokio::test]
async fn a_dead_mcp_server_is_warned_about_once_for_many_sessions() {
    let lines = Lines::default();
    let _logging = tracing::subscriber::set_default(lines.clone());
    let server =
        crate::mcp::start([("py", crate::mcp::program(&["dies"]))], crate::mcp::settings(), &[]).await;
    for _ in 0..5 {
        let session = crate::mcp::session_with(&server, "py", json!({})).await;
        server.model.script([Reply::text("Done.")]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        stream.until_idle().await;
        // The model is told each time.
        let messages = server.model.requests().pop().unwrap().body["messages"].to_string();
        assert!(messages.contains("The MCP server py cannot be used now"), "{messages}");
    }
    let warned = lines.with("WARN", "an MCP server cannot be used");
    assert_eq!(warned.len(), 1, "{warned:?}");
}
