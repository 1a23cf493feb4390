//! The Agent Application Protocol from outside.

mod bad_input;
mod client_rules;
mod examples;
mod images;
mod lives_on;
mod mcp;
mod meta;
mod person;
mod sessions;
mod settings;
mod story;
mod together;
mod tools;

use std::collections::BTreeMap;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_testkit::{Answer, Setup, TestServer};
use petasos_tools::{Invocation, Tool, ToolOutput};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

pub(crate) const WEATHER: &str = "Tokyo: 18°C, partly cloudy";

/// A tool of the server that says what the weather is like, and which secrets it was given: backwards, because as they
/// are they would be taken out.
pub(crate) struct WebSearch;

impl Tool for WebSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "web_search".to_owned(),
            description: "Searches.".to_owned(),
            input_schema: json!({ "type": "object", "properties": { "query": { "type": "string" } } }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, _: &Map<String, Value>) -> Option<String> {
        None
    }

    fn run(&self, call: Invocation) -> BoxFuture<'static, ToolOutput> {
        let secrets = call.secrets.iter();
        let secrets = secrets.map(|(name, value)| format!(" {name}={}", backwards(value.expose_secret())));
        std::future::ready(ToolOutput::ok(format!("{WEATHER}{}", secrets.collect::<String>()))).boxed()
    }
}

pub(crate) fn backwards(text: &str) -> String {
    text.chars().rev().collect()
}

/// An application that talks to one agent.
pub(crate) struct App {
    pub(crate) server: TestServer,
    pub(crate) agent: String,
}

impl App {
    pub(crate) async fn start() -> Self {
        Self::with_agent(json!({})).await
    }

    /// With an agent that has these fields besides.
    pub(crate) async fn with_agent(fields: Value) -> Self {
        let server = TestServer::start_with(Setup::default().with_tool(WebSearch)).await;
        let agent = server.agent_with(fields).await;
        App { server, agent }
    }

    pub(crate) async fn post_session(&self, body: Value) -> Answer {
        self.server.client.post("/aap/sessions", body).await
    }

    /// A session with these fields of its agent, and these of its own.
    pub(crate) async fn session_with(&self, agent: Value, fields: Value) -> String {
        let mut body = json!({ "agent": { "name": self.agent } });
        merge(&mut body["agent"], agent);
        merge(&mut body, fields);
        let created = self.post_session(body).await.expect(201);
        created["sessionId"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn session(&self) -> String {
        self.session_with(json!({}), json!({})).await
    }

    /// A session with `web_search`, trusted or not, and the application's own `get_weather`.
    pub(crate) async fn session_with_tools(&self, trust: bool) -> String {
        let tools = json!({ "tools": [{ "name": "web_search", "trust": trust }] });
        self.session_with(tools, json!({ "tools": [get_weather()] })).await
    }

    pub(crate) async fn post_turn(&self, session: &str, body: Value) -> Answer {
        self.server.client.post(&format!("/aap/sessions/{session}/turns"), body).await
    }

    /// A turn in the mode `none`.
    pub(crate) async fn turn(&self, session: &str, messages: Value) -> Value {
        self.post_turn(session, json!({ "messages": messages })).await.expect(200)
    }

    /// A turn in another mode: all its frames, by name and data.
    pub(crate) async fn stream(&self, session: &str, mode: &str, messages: Value) -> Vec<(String, Value)> {
        let body = json!({ "stream": mode, "messages": messages });
        let path = format!("/aap/sessions/{session}/turns");
        let mut stream = self.server.client.post_stream(&path, body).await;
        let mut frames = Vec::new();
        while let Some(frame) = stream.next().await {
            assert_eq!(frame.id, None);
            frames.push((frame.event, frame.data));
        }
        frames
    }

    pub(crate) async fn info(&self, session: &str) -> Value {
        self.server.client.get(&format!("/aap/sessions/{session}")).await.expect(200)
    }

    pub(crate) async fn history(&self, session: &str, kind: &str) -> Value {
        let path = format!("/aap/sessions/{session}/history?type={kind}");
        let body = self.server.client.get(&path).await.expect(200);
        assert_eq!(body["history"].as_object().unwrap().len(), 1, "{body}");
        body["history"][kind].clone()
    }
}

fn merge(into: &mut Value, fields: Value) {
    for (name, value) in fields.as_object().unwrap() {
        into[name] = value.clone();
    }
}

/// A tool of the application.
pub(crate) fn get_weather() -> Value {
    json!({
        "name": "get_weather",
        "title": "Weather",
        "description": "Looks out of the window.",
        "parameters": { "type": "object", "properties": { "location": { "type": "string" } } },
    })
}

pub(crate) fn says(text: &str) -> Value {
    json!([{ "role": "user", "content": text }])
}

/// The ids of all calls of a body, history or stream, in order.
pub(crate) fn call_ids(value: &Value) -> Vec<String> {
    let mut ids = BTreeMap::new();
    named(value.clone(), &mut ids);
    let mut ordered: Vec<_> = ids.into_iter().collect();
    ordered.sort_by_key(|(_, number)| *number);
    ordered.into_iter().map(|(id, _)| id).collect()
}

/// The same with the calls named `call_1`, `call_2` … in the order in which they are seen.
pub(crate) fn normal(value: Value) -> Value {
    named(value, &mut BTreeMap::new())
}

pub(crate) fn named(value: Value, seen: &mut BTreeMap<String, usize>) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(|item| named(item, seen)).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| match value {
                Value::String(id) if name == "toolCallId" => {
                    let next = seen.len() + 1;
                    let number = *seen.entry(id).or_insert(next);
                    (name, json!(format!("call_{number}")))
                }
                value => (name, named(value, seen)),
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// Frames as one value, with calls renamed.
pub(crate) fn frames(frames: Vec<(String, Value)>) -> Value {
    normal(frames.into_iter().map(|(name, data)| json!([name, data])).collect())
}
