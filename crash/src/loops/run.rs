//! An accepted run of a routine: the server dies when it opens the run in its session.

use std::path::Path;

use petasos_net::Method;
use petasos_testkit::receiver::Receiver;
use petasos_testkit::{Client, within};
use serde_json::{Value, json};

use super::case::Case;
use crate::shim::{Call, Rule};

#[derive(Default)]
pub(super) struct AcceptedRun {
    receiver: Option<Receiver>,
}

async fn settled(client: &Client) -> Value {
    within("the run to settle", async {
        loop {
            let runs = client.get("/routines/once/runs").await.expect(200);
            let run = &runs["items"][0];
            if run["completed_at"].is_string() {
                return run.clone();
            }
        }
    })
    .await
}

impl Case for AcceptedRun {
    const KIND: &'static str = "run";

    fn config(&self) -> Value {
        json!({ "egress": { "allow": ["127.0.0.1"] } })
    }

    async fn prepare(&mut self, client: &Client) {
        self.receiver = Some(Receiver::start().await);
        let routine = json!({ "agent": { "model": "openai/scripted" }, "timeout_seconds": 600 });
        client.put("/routines/once", routine).await.expect(201);
    }

    fn rule(&self) -> Rule {
        Rule::kill(Call::Write, "*/petasos.db-wal", "run.opened")
    }

    async fn begin(&mut self, client: &Client) {
        let trigger = json!({ "input": {}, "callback_url": self.receiver.as_ref().unwrap().url }).to_string();
        client.try_send(Method::Post, "/routines/once/trigger", Some(trigger.into())).await;
    }

    async fn check_done(&self, client: &Client, _: &Path) {
        let run = settled(client).await;
        assert!(run["started_at"].is_string(), "{run}");
    }

    /// The run has failed, which its callback tells; nothing is left that could succeed.
    fn shows_given_up(&self) -> bool {
        false
    }

    async fn check_given_up(&self, client: &Client, _: &Path) {
        let run = settled(client).await;
        assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!("session_error")));
    }
}
