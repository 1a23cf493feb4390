//! Applications that use sessions until the server is gone.

use std::sync::Arc;

use petasos_net::Method;
use petasos_testkit::client::message;
use petasos_testkit::{Answer, Client};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::ledger::Ledger;
use crate::model::KINDS;

pub(crate) async fn create_sessions(client: &Client, count: usize) -> Vec<String> {
    let allowed = json!([{ "name": "terminal", "permissionPolicy": { "type": "always_allow" } }]);
    let tools = json!([
        { "type": "agent_toolset", "configs": allowed },
        { "type": "custom_tool", "name": "check_order" },
    ]);
    let agent = client.agent(json!({ "name": "Crash", "model": "openai/scripted", "tools": tools })).await;
    let mut sessions = Vec::with_capacity(count);
    for _ in 0..count {
        sessions.push(client.session(&agent).await);
    }
    sessions
}

/// One application, driving one session.
pub(crate) struct Driver(JoinHandle<()>);

impl Driver {
    pub(crate) fn start(client: Client, session: String, ledger: Arc<Ledger>, seed: u64) -> Self {
        Driver(tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(seed);
            // It ends when the server no longer answers.
            while act(&client, &session, &ledger, &mut random).await.is_some() {}
        }))
    }

    pub(crate) async fn join(self) {
        self.0.await.expect("a driver failed");
    }
}

/// Does one thing with the session; none if the server is gone.
async fn act(client: &Client, session: &str, ledger: &Ledger, random: &mut StdRng) -> Option<()> {
    let shown = client.try_send(Method::Get, &format!("/v1/sessions/{session}"), None).await?;
    let pending = shown.body["pendingActions"].as_array().cloned().unwrap_or_default();
    let running = shown.body["status"] == "running";
    let events = match random.random_range(0..20) {
        0 => vec![json!({ "type": "user.interrupt" })],
        1 => vec![json!({ "type": "user.steer", "message": "Be quick." })],
        _ if !pending.is_empty() => answers(&pending, random),
        _ if running => {
            // Following the turn is what most clients do most of the time.
            follow(client, session).await?;
            return Some(());
        }
        _ => {
            let name = format!("{}-{}", KINDS.choose(random)?, random.random::<u32>());
            ledger.update(session, |account| account.sent.extend([name.clone()]));
            vec![message(&format!("do {name}"))]
        }
    };
    let answer = send(client, session, &events).await?;
    match answer.status {
        200 => ledger.acknowledge(session, &answer.body["data"]),
        409 => {}
        status => panic!("{status}: {}", answer.body),
    }
    Some(())
}

async fn send(client: &Client, session: &str, events: &[Value]) -> Option<Answer> {
    let body = json!({ "events": events }).to_string();
    client.try_send(Method::Post, &format!("/v1/sessions/{session}/events"), Some(body.into())).await
}

/// Sends steering, which is kept at once and starts no turn.
pub(crate) async fn steer(client: &Client, session: &str, text: &str) -> Answer {
    client.event(session, json!({ "type": "user.steer", "message": text })).await
}

/// Follows the session until it is idle.
async fn follow(client: &Client, session: &str) -> Option<()> {
    let mut stream = client.try_stream(session, "?after=0").await?;
    let mut last = 0;
    // What is replayed first ends with the turn that is under way, or with the idle event that ended it.
    let shown = client
        .try_send(Method::Get, &format!("/v1/sessions/{session}/events?order=desc&limit=1"), None)
        .await?;
    let newest = shown.body["data"][0]["sequence"].as_u64().unwrap_or(0);
    loop {
        let frame = stream.next().await?;
        if frame.id.is_some() {
            let sequence = frame.data["sequence"].as_u64()?;
            assert!(sequence > last, "a stream repeated {sequence}");
            last = sequence;
            if frame.event == "session.status_idle" && sequence >= newest {
                return Some(());
            }
        }
    }
}

/// Answers one of the pending actions, or all in one request.
fn answers(pending: &[Value], random: &mut StdRng) -> Vec<Value> {
    let answered = if random.random_bool(0.5) { pending } else { &pending[..1] };
    answered.iter().map(answer).collect()
}

fn answer(action: &Value) -> Value {
    let id = &action["id"];
    match action["type"].as_str() {
        Some("clarify") => json!({ "type": "user.clarify_result", "request_id": id, "answer": "a" }),
        Some("custom_tool") => {
            let content = json!([{ "type": "text", "text": "shipped" }]);
            json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content })
        }
        other => panic!("nobody raised {other:?}"),
    }
}

/// Answers everything that a session waits for until its turn is over.
pub(crate) async fn settle(client: &Client, session: &str, ledger: &Ledger) {
    loop {
        let shown = client.get(&format!("/v1/sessions/{session}")).await.expect(200);
        let pending = shown["pendingActions"].as_array().unwrap();
        if shown["status"] == "running" {
            follow(client, session).await.unwrap();
        } else if pending.is_empty() {
            return;
        } else {
            let events: Vec<Value> = pending.iter().map(answer).collect();
            let accepted = send(client, session, &events).await.unwrap().expect(200);
            ledger.acknowledge(session, &accepted["data"]);
        }
    }
}
