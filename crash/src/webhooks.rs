//! A receiver of webhooks, which outlives the server: every event of every session comes to it at least once.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result};
use petasos_testkit::Client;
use petasos_testkit::receiver::{Received, Receiver};
use serde_json::{Value, json};

/// Starts a receiver, and has the server of this home send all events to it.
pub(crate) async fn receive(home: &Path) -> Result<Receiver> {
    let receiver = Receiver::start().await;
    let retries = json!({ "first_retry_seconds": 0.05, "max_retry_seconds": 1, "max_attempts": 1000 });
    let config = json!({ "deliveries": { "event_webhook_url": receiver.url, "events": retries } });
    std::fs::write(home.join("config.yaml"), config.to_string()).context("cannot write the configuration")?;
    Ok(receiver)
}

/// Checks that what came is the conversation that readers see, in its order and with equal bytes whenever it came
/// again, and forgets it.
pub(crate) async fn check(client: &Client, sessions: &[String], receiver: &Receiver) {
    arrived(client, sessions, receiver).await;
    receiver.forget();
}

/// Waits until all events of these sessions have come, and checks them.
pub(crate) async fn arrived(client: &Client, sessions: &[String], receiver: &Receiver) {
    for session in sessions {
        let path = format!("/conversation/sessions/{session}/events?wait_for_data=0");
        let events = client.get(&path).await.expect(200).as_array().unwrap().clone();
        let all = receiver.wait_until(|received| firsts(received, session).len() >= events.len()).await;
        let arrived: Vec<Value> = firsts(&all, session).into_iter().map(Received::json).collect();
        assert_eq!(arrived, events, "{session}: its receiver was told something else");
        let mut bodies: HashMap<&str, &[u8]> = HashMap::new();
        for request in all.iter().filter(|request| request.header("x-session-id") == session) {
            let first = bodies.entry(request.header("webhook-id")).or_insert(&request.body);
            assert_eq!(*first, request.body, "{session}: what came again has other bytes");
        }
    }
}

/// What came for a session, without what came again.
fn firsts<'a>(received: &'a [Received], session: &str) -> Vec<&'a Received> {
    let mut seen = std::collections::HashSet::new();
    let of_session = received.iter().filter(|request| request.header("x-session-id") == session);
    of_session.filter(|request| seen.insert(request.header("webhook-id"))).collect()
}
