//! The wake of a session: the server dies when it reads the session's log.

use std::path::Path;

use petasos_testkit::client::message;
use petasos_testkit::{Client, Gate, ModelServer, Reply};
use serde_json::json;

use super::case::Case;
use crate::recording;
use crate::shim::{Call, Rule};

/// What the log holds.
const MARK: &str = "what-nobody-can-read";
/// Characters of four bytes each, nearly as many as an event may have, and events of one request.
const CHARACTERS: usize = 19_000;
const EVENTS: usize = 16;
/// Requests that make the database larger than what is read whole at each start, which is 16 MB.
const REQUESTS: usize = 16;
/// More than a page.
const BEGINNING: usize = 8192;

#[derive(Default)]
pub(super) struct Wake {
    session: String,
    gate: Gate,
}

impl Case for Wake {
    // The turn stands at its model call.
    const KIND: &'static str = "model_call";

    fn answer(&self, model: &ModelServer) {
        let gate = self.gate.clone();
        model.respond(move |request| {
            if request.last_user_text().contains(MARK) {
                Reply::text("Read.").gate(&gate)
            } else {
                crate::model::reply(request)
            }
        });
    }

    async fn prepare(&mut self, client: &Client) {
        let sessions = recording::sessions(client, 1 + REQUESTS).await;
        let steer = json!({ "type": "user.steer", "message": "🏛".repeat(CHARACTERS) });
        let request = json!({ "events": vec![steer; EVENTS] });
        for session in &sessions[1..] {
            client.post(&format!("/v1/sessions/{session}/events"), request.clone()).await.expect(200);
        }
        self.session.clone_from(&sessions[0]);
        // The beginning of an event is in the same page as the event that is appended after it.
        let text = format!("{} {}", "x".repeat(BEGINNING), MARK.repeat(100));
        client.event(&self.session, message(&text)).await.expect(200);
    }

    fn stops_first(&self) -> bool {
        true
    }

    fn rule(&self) -> Rule {
        Rule::kill(Call::Read, "*/petasos.db", MARK)
    }

    async fn begin(&mut self, _: &Client) {
        // The model has its say, if only it is asked again.
        self.gate.open();
    }

    async fn check_done(&self, client: &Client, _: &Path) {
        let mut stream = client.stream(&self.session, "?after=0").await;
        assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    }

    /// Ending the turn in good order needs its log, too.
    fn last_deaths(&self) -> u32 {
        2
    }

    async fn check_given_up(&self, client: &Client, _: &Path) {
        let shown = client.get(&format!("/v1/sessions/{}", self.session)).await.expect(200);
        assert_eq!(shown["status"], "idle", "{shown}");
        check_error(client, &self.session).await;
        // The session goes on with the next message.
        let mut stream = client.stream(&self.session, "").await;
        client.event(&self.session, message("do plain-2")).await.expect(200);
        assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    }
}

async fn check_error(client: &Client, session: &str) {
    let events = client.events(session).await;
    let idle = events.iter().rfind(|event| event["type"] == "session.status_idle").unwrap();
    assert_eq!(idle["payload"]["stop_reason"]["code"], "crash_loop", "{idle}");
}
