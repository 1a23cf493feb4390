//! Webhooks from outside: a real receiver, and everything that can be wrong with it.

mod credentials;
mod faults;
mod guard;
mod order;
mod records;
mod restart;
mod urls;

use std::time::Duration;

use petasos_engine::{DeliverySettings, Retries};
use petasos_net::{Egress, Guard};
use petasos_testkit::receiver::{Received, Receiver};
use petasos_testkit::{Reply, Setup, TestServer, within};
use serde_json::{Value, json};

/// A server that may reach this machine, and waits long enough for receivers on a busy one.
fn setup() -> Setup {
    let allow = vec!["127.0.0.1".parse().unwrap()];
    let retries = Retries {
        first_delay: Duration::from_millis(20),
        max_delay: Duration::from_millis(100),
        max_attempts: 4,
    };
    Setup {
        guard: Guard::new(Egress { allow, only_hosts: Vec::new() }),
        deliveries: DeliverySettings {
            timeout: Duration::from_secs(60),
            events: retries,
            callbacks: retries,
            ..DeliverySettings::default()
        },
        ..Setup::default()
    }
}

/// The same, which does not wait long for an answer.
fn impatient() -> Setup {
    let setup = setup();
    let deliveries = DeliverySettings { timeout: Duration::from_millis(1500), ..setup.deliveries };
    Setup { deliveries, ..setup }
}

async fn start() -> (TestServer, Receiver) {
    start_with(setup()).await
}

async fn start_with(setup: Setup) -> (TestServer, Receiver) {
    (Box::pin(TestServer::start_with(setup)).await, Receiver::start().await)
}

/// A session whose events go to a URL.
async fn session(server: &TestServer, url: &str) -> String {
    let agent = server.agent_with(json!({})).await;
    let metadata = json!({ "metadata": { "event_webhook_url": url } });
    let session = server.client.post(&format!("/v1/agents/{agent}/sessions"), metadata).await.expect(201);
    session["id"].as_str().unwrap().to_owned()
}

/// Has one turn, from the message to its end.
async fn turn(server: &TestServer, session: &str, text: &str) {
    server.model.script([Reply::text(text)]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, text).await.expect(200);
    stream.until_idle().await;
}

/// Changes where the events of a session go.
async fn set_url(server: &TestServer, session: &str, url: Value) {
    let metadata = json!({ "metadata": { "event_webhook_url": url } });
    server.client.patch(&format!("/v1/sessions/{session}"), metadata).await.expect(200);
}

/// What a session's events are to whoever reads them.
async fn conversation(server: &TestServer, session: &str) -> Vec<Value> {
    let path = format!("/conversation/sessions/{session}/events?wait_for_data=0");
    let events = server.client.get(&path).await.expect(200).as_array().unwrap().clone();
    check(server, "conversation-event.json", &events).await;
    events
}

/// Checks that documents are what their schema says.
async fn check(server: &TestServer, schema: &str, documents: &[Value]) {
    let schema = server.client.get(&format!("/schemas/{schema}")).await.expect(200);
    let schema = jsonschema::draft202012::new(&schema).unwrap();
    for document in documents {
        assert!(schema.is_valid(document), "{document}");
    }
}

/// A session's deliveries, oldest first.
async fn deliveries(server: &TestServer, session: &str) -> Vec<Value> {
    let path = format!("/deliveries?session_id={session}&limit=100");
    let page = server.client.get(&path).await.expect(200);
    let all: Vec<Value> = page["items"].as_array().unwrap().iter().rev().cloned().collect();
    check(server, "delivery.json", &all).await;
    all
}

/// A session's deliveries, when none of them is pending any more.
async fn settled(server: &TestServer, session: &str) -> Vec<Value> {
    within("deliveries to settle", async {
        loop {
            let all = deliveries(server, session).await;
            if all.iter().all(|delivery| delivery["status"] != "pending") {
                return all;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

fn statuses(deliveries: &[Value]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery["status"].as_str().unwrap()).collect()
}

fn bodies(received: &[Received]) -> Vec<Value> {
    received.iter().map(Received::json).collect()
}

/// Without those that came again.
fn first_arrivals(received: &[Received]) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    let first = received.iter().filter(|request| seen.insert(request.header("webhook-id").to_owned()));
    first.map(Received::json).collect()
}

#[tokio::test]
async fn every_event_is_posted_as_readers_see_it() {
    let (server, receiver) = start().await;
    let session = session(&server, &receiver.url).await;
    turn(&server, &session, "Hello.").await;
    let events = conversation(&server, &session).await;
    let received = receiver.wait_for(events.len()).await;
    assert_eq!(bodies(&received), events);
    let kinds: Vec<_> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user_message", "status", "status", "assistant_message", "status"]);
    for request in &received {
        assert_eq!(request.path, "/hook");
        assert_eq!(request.header("content-type"), "application/json");
        assert!(request.header("authorization").starts_with("Bearer pdt_"));
        assert_eq!(request.header("x-session-id"), session);
        assert_eq!(request.header("webhook-id"), format!("evt_{session}_{}", request.offset()));
        assert_eq!(request.header("webhook-attempt"), "1");
        let timestamp: i64 = request.header("webhook-timestamp").parse().unwrap();
        assert!((jiff::Timestamp::now().as_second() - timestamp).abs() < 60);
        let signer: petasos_net::webhook::Signer = petasos_testkit::server::DELIVERY_SECRET.parse().unwrap();
        let expected = signer.sign(request.header("webhook-id"), timestamp, &request.body);
        assert_eq!(request.header("webhook-signature"), expected);
    }
    let all = settled(&server, &session).await;
    assert_eq!(statuses(&all), vec!["delivered"; events.len()]);
    assert_eq!(all[0]["attempts"][0]["status_code"], 200);
}

#[tokio::test]
async fn a_session_without_a_webhook_has_no_deliveries() {
    let (server, _receiver) = start().await;
    let session = server.session().await;
    turn(&server, &session, "Hello.").await;
    assert!(deliveries(&server, &session).await.is_empty());
}

#[tokio::test]
async fn tools_and_pauses_are_posted_too() {
    let (server, receiver) = start().await;
    let tools =
        json!([{ "type": "custom_tool", "name": "check_order", "description": "Looks up an order." }]);
    let metadata = json!({ "event_webhook_url": receiver.url });
    let agent = server.agent_with(json!({ "tools": tools, "metadata": metadata })).await;
    let session = server.client.session(&agent).await;
    server
        .model
        .script([Reply::tool_call("check_order", json!({ "id": 7 })), Reply::text("It is on its way.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "Where is it?").await.expect(200);
    let frames = stream.until_idle().await;
    let call = frames.iter().find(|frame| frame.event == "agent.custom_tool_use").unwrap();
    // The actor that answers is another one than the actor that asked.
    server.wait_until_asleep().await;
    let id = call.data["payload"]["id"].as_str().unwrap_or_else(|| call.data["id"].as_str().unwrap());
    let answer = json!({ "type": "user.custom_tool_result", "tool_use_id": id,
        "content": [{ "type": "text", "text": "{\"state\":\"sent\"}" }] });
    server.client.event(&session, answer).await.expect(200);
    stream.until_idle().await;
    let events = conversation(&server, &session).await;
    let received = receiver.wait_for(events.len()).await;
    assert_eq!(bodies(&received), events);
    let tool = events.iter().find(|event| event["kind"] == "tool").unwrap();
    let call =
        json!({ "tool_id": "custom:check_order", "arguments": { "id": 7 }, "result": { "state": "sent" } });
    assert_eq!(tool["tool_calls"], json!([call]));
}
