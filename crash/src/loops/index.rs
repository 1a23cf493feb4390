//! The index of messages: the server dies when it writes the index's entry for one word.

use std::path::Path;

use futures_util::future::join_all;
use petasos_net::Method;
use petasos_testkit::model_server::RecordedRequest;
use petasos_testkit::{Client, ModelServer, Reply};
use serde_json::json;

use super::case::Case;
use crate::shim::{Call, Rule};

/// A word as a person writes it, and as it is in the index and nowhere else.
const WORD: &str = "ZQXJKVW9";
const INDEXED: &str = "zqxjkvw9";
/// Sessions, and turns of each. The index is fed when 512 messages wait, and each turn has two.
const SESSIONS: usize = 16;
const TURNS: usize = 18;

#[derive(Default)]
pub(super) struct Index {
    sessions: Vec<String>,
}

fn reply(request: &RecordedRequest) -> Reply {
    let text = request.last_user_text();
    let is_answered =
        request.body["messages"].as_array().unwrap().last().is_some_and(|last| last["role"] == "tool");
    match text.strip_prefix("search ") {
        Some(query) if !is_answered => Reply::tool_call("session_search", json!({ "query": query })),
        Some(_) => Reply::text("Searched."),
        None => crate::model::reply(request),
    }
}

/// Takes a turn; `false` if the server is gone.
async fn turn(client: &Client, session: &str, text: &str) -> bool {
    let Some(mut stream) = client.try_stream(session, "").await else { return false };
    let body = json!({ "events": [petasos_testkit::client::message(text)] }).to_string();
    let path = format!("/v1/sessions/{session}/events");
    if client.try_send(Method::Post, &path, Some(body.into())).await.is_none() {
        return false;
    }
    while let Some(frame) = stream.next().await {
        if frame.event == "session.status_idle" {
            return true;
        }
    }
    false
}

impl Index {
    /// How many messages a search finds.
    async fn hits(&self, client: &Client, query: &str) -> usize {
        let session = self.sessions.last().unwrap();
        assert!(turn(client, session, &format!("search {query}")).await);
        let events = client.events(session).await;
        let result = events.iter().rfind(|event| event["type"] == "agent.tool_result").unwrap();
        let text = result["payload"]["content"][0]["text"].as_str().unwrap();
        text.matches(query).count()
    }
}

impl Case for Index {
    const KIND: &'static str = "index";

    fn answer(&self, model: &ModelServer) {
        model.respond(reply);
    }

    async fn prepare(&mut self, client: &Client) {
        let agent = client.agent(json!({ "name": "Index", "model": "openai/scripted" })).await;
        for _ in 0..SESSIONS {
            let new = json!({ "userId": "anna" });
            let session = client.post(&format!("/v1/agents/{agent}/sessions"), new).await.expect(201);
            self.sessions.push(session["id"].as_str().unwrap().to_owned());
        }
        assert!(turn(client, &self.sessions[0], WORD).await);
        assert!(turn(client, &self.sessions[1], "TEAPOT").await);
    }

    fn rule(&self) -> Rule {
        Rule::kill(Call::Write, "*/petasos.db-wal", INDEXED)
    }

    async fn begin(&mut self, client: &Client) {
        join_all(self.sessions.iter().map(|session| async move {
            for number in 0..TURNS {
                if !turn(client, session, &format!("do plain-{number}")).await {
                    return;
                }
            }
        }))
        .await;
    }

    async fn check_done(&self, client: &Client, _: &Path) {
        assert!(self.hits(client, WORD).await > 0, "the message is found");
        assert!(self.hits(client, "TEAPOT").await > 0, "others are found");
    }

    fn shows_given_up(&self) -> bool {
        false
    }

    async fn check_given_up(&self, client: &Client, _: &Path) {
        // The message that the server dies of is left out when its turn comes again.
        super::case::until_nothing_is_set_aside(client).await;
        assert!(self.hits(client, "TEAPOT").await > 0, "others are found");
    }
}
