//! A wait that is over: the server dies when it writes that down.

use std::path::Path;

use petasos_testkit::Client;
use petasos_testkit::client::message;
use serde_json::{Value, json};

use super::case::Case;
use crate::recording;
use crate::shim::{Call, Rule};

#[derive(Default)]
pub(super) struct Expiry {
    session: String,
}

impl Case for Expiry {
    const KIND: &'static str = "expiry";

    fn config(&self) -> Value {
        json!({ "limits": { "action_seconds": 1 } })
    }

    async fn prepare(&mut self, client: &Client) {
        self.session = recording::sessions(client, 1).await.remove(0);
    }

    fn rule(&self) -> Rule {
        Rule::kill(Call::Write, "*/petasos.db-wal", "session.action_expired")
    }

    async fn begin(&mut self, client: &Client) {
        client.event(&self.session, message("do clarify-1")).await.expect(200);
    }

    async fn check_done(&self, client: &Client, _: &Path) {
        let mut stream = client.stream(&self.session, "?after=0").await;
        let frames = stream.until(|frame| frame.stop() == Some("end_turn")).await;
        assert!(frames.iter().any(|frame| frame.event == "session.action_expired"));
    }

    async fn check_given_up(&self, client: &Client, _: &Path) {
        let shown = client.get(&format!("/v1/sessions/{}", self.session)).await.expect(200);
        let waits = &shown["pendingActions"][0]["id"];
        let answer = json!({ "type": "user.clarify_result", "request_id": waits, "answer": "a" });
        client.event(&self.session, answer).await.expect(200);
        let mut stream = client.stream(&self.session, "?after=0").await;
        stream.until(|frame| frame.stop() == Some("end_turn")).await;
    }
}
