//! Conversations from outside.

mod actions;
mod bad_input;
mod customers;
mod events;
mod raw;
mod raw_changes;
mod reading;
mod statuses;

use petasos_core::ids::TenantId;
use petasos_testkit::{Answer, Setup, TestServer};
use serde_json::{Value, json};

/// A support product with one conversation.
pub(crate) struct Talk {
    pub(crate) server: TestServer,
    pub(crate) session: String,
    schema: jsonschema::Validator,
}

impl Talk {
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default(), json!({})).await
    }

    /// Opens a conversation with an agent that has these fields.
    pub(crate) async fn with(setup: Setup, fields: Value) -> Self {
        let server = TestServer::start_with(setup).await;
        let mut definition = json!({ "name": "Support", "model": "openai/scripted" });
        definition.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let definition = serde_json::from_value(definition).unwrap();
        let id = "interactiveAgent".parse().unwrap();
        server.engine.create_agent(&TenantId::default_tenant(), Some(id), definition).await.unwrap();
        let session = server.client.post("/conversation/sessions", json!({})).await.expect(201);
        let session = session["id"].as_str().unwrap().to_owned();
        let schema = server.client.get("/schemas/conversation-event.json").await.expect(200);
        Talk { server, session, schema: jsonschema::validator_for(&schema).unwrap() }
    }

    pub(crate) fn path(&self) -> String {
        format!("/conversation/sessions/{}", self.session)
    }

    pub(crate) async fn post(&self, event: Value) -> Answer {
        self.server.client.post(&format!("{}/events", self.path()), event).await
    }

    pub(crate) async fn say(&self, text: &str) -> Value {
        self.checked(self.post(json!({ "kind": "user_message", "text": text })).await.expect(201))
    }

    pub(crate) async fn get(&self, query: &str) -> Answer {
        self.server.client.get(&format!("{}/events?{query}", self.path())).await
    }

    /// What is there now, by this query.
    pub(crate) async fn read(&self, query: &str) -> Vec<Value> {
        let events = self.get(query).await.expect(200);
        events.as_array().unwrap().iter().map(|event| self.checked(event.clone())).collect()
    }

    /// Events from an offset on, until the turn is over.
    pub(crate) async fn until_over(&self, from: u64) -> Vec<Value> {
        let mut events: Vec<Value> = Vec::new();
        loop {
            let from = events.last().map_or(from, |last| last["offset"].as_u64().unwrap() + 1);
            events.extend(self.read(&format!("min_offset={from}&wait_for_data=30")).await);
            let over = ["ready", "error", "cancelled"];
            if events.last().is_some_and(|last| over.contains(&last["status"].as_str().unwrap_or_default())) {
                return events;
            }
        }
    }

    /// Reads from an offset on until a status comes, and returns the offset after it.
    pub(crate) async fn until_status(&self, from: u64, status: &str) -> u64 {
        self.until(from, |event| event["status"] == status && event["stage"].is_null()).await
    }

    /// Reads from an offset on until the turn waits for somebody, and returns the offset after that.
    pub(crate) async fn until_waiting(&self, from: u64) -> u64 {
        self.until(from, |event| event["status"] == "processing" && event["stage"] == "waiting").await
    }

    async fn until(&self, mut from: u64, fits: impl Fn(&Value) -> bool) -> u64 {
        loop {
            for event in self.read(&format!("min_offset={from}&wait_for_data=30")).await {
                from = event["offset"].as_u64().unwrap() + 1;
                if fits(&event) {
                    return from;
                }
            }
        }
    }

    /// The event, which must be what the schema says.
    pub(crate) fn checked(&self, event: Value) -> Value {
        if let Err(error) = self.schema.validate(&event) {
            panic!("{event} breaks its schema: {error}");
        }
        event
    }
}

/// The kind of each event, with what it says.
pub(crate) fn story(events: &[Value]) -> Vec<String> {
    let told = |event: &Value| {
        let said = ["text", "status"].iter().find_map(|field| event[field].as_str());
        format!("{} {}", event["kind"].as_str().unwrap(), said.unwrap_or_default()).trim().to_owned()
    };
    events.iter().map(told).collect()
}
