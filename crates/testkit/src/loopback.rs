//! A messaging channel without a platform: what a test says in a chat goes through the gateway's hooks to a session.
//!
//! It fires every gateway event, in the order in which a real channel must.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{Block, Payload, StopReason, UserMessage, UserSteer};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, Item, NewSession, Start};
use petasos_hooks::python::{Gateway, OutgoingMessage, PythonHosts};
use petasos_hooks::{Bus, Dispatch};
use serde_json::{Map, Value, json};

use crate::within;

/// What a platform is called here.
pub const PLATFORM: &str = "loopback";
/// The most characters of a text that gateway events carry.
const MAX_TEXT: usize = 500;

/// The channel. Cheap to clone.
#[derive(Clone)]
pub struct Loopback {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    bus: Arc<Bus>,
    hosts: PythonHosts,
    agent_id: AgentId,
    sessions: Mutex<HashMap<String, SessionId>>,
    sent: Mutex<Vec<OutgoingMessage>>,
}

impl Loopback {
    /// A channel to an agent. Plugins find it as their gateway.
    pub fn new(engine: &Engine, bus: Arc<Bus>, hosts: &PythonHosts, agent_id: &str) -> Self {
        let shared = Shared {
            engine: engine.clone(),
            bus,
            hosts: hosts.clone(),
            agent_id: agent_id.parse().unwrap(),
            sessions: Mutex::default(),
            sent: Mutex::default(),
        };
        let loopback = Loopback { shared: Arc::new(shared) };
        hosts.serve_gateway(Arc::new(loopback.clone()));
        loopback
    }

    /// What was sent to chats besides answers.
    pub fn sent(&self) -> Vec<OutgoingMessage> {
        self.shared.sent.lock().unwrap().clone()
    }

    /// A user says something in a chat. Returns what they are answered, if anything.
    pub async fn say(&self, chat_id: &str, text: &str) -> Option<String> {
        let source =
            json!({ "platform": PLATFORM, "chat_id": chat_id, "user_id": "user", "chat_type": "dm" });
        let arguments = json!({
            "event": { "text": text, "source": source, "message_id": "1", "internal": false },
            "gateway": { "platforms": [PLATFORM] },
            "session_store": {},
        });
        let text = match self.shared.bus.pre_gateway_dispatch(object(arguments)).await {
            Dispatch::Skip { .. } => return None,
            Dispatch::Rewrite { text } => text,
            Dispatch::Allow => text.to_owned(),
        };
        match text.strip_prefix('/') {
            Some(command) => self.command(chat_id, command).await,
            None => Some(self.turn(chat_id, &text).await),
        }
    }

    /// Runs a slash command, unless a hook decides otherwise.
    async fn command(&self, chat_id: &str, command: &str) -> Option<String> {
        let (name, args) = command.split_once(' ').unwrap_or((command, ""));
        let context = json!({ "platform": PLATFORM, "user_id": "user", "command": name, "args": args });
        let decisions = self.shared.hosts.emit(&format!("command:{name}"), object(context)).await;
        let text = |decision: &Value| decision["message"].as_str().map(str::to_owned);
        for decision in decisions {
            match decision["decision"].as_str() {
                Some("deny") => return text(&decision).or(Some("Denied.".to_owned())),
                Some("handled") => return text(&decision),
                _ => {}
            }
        }
        if name == "new" {
            self.reset(chat_id).await;
            return Some("A new session.".to_owned());
        }
        let caller = petasos_hooks::python::Caller::default();
        self.shared.hosts.run_command(name, args, caller).await.unwrap_or_else(Some)
    }

    async fn reset(&self, chat_id: &str) {
        self.shared.sessions.lock().unwrap().remove(chat_id);
        for event in ["session:end", "session:reset"] {
            let context = json!({ "platform": PLATFORM, "user_id": "user", "session_key": key(chat_id) });
            self.shared.hosts.emit(event, object(context)).await;
        }
    }

    /// Runs a turn with the chat's session, and tells gateway hooks of its steps.
    async fn turn(&self, chat_id: &str, text: &str) -> String {
        let tenant = TenantId::default_tenant();
        let id = self.session(chat_id).await;
        let about = json!({ "platform": PLATFORM, "user_id": "user", "session_id": id });
        let emit = async |event: &str, more: Value| {
            let mut context = object(about.clone());
            context.extend(object(more));
            self.shared.hosts.emit(event, context).await;
        };
        let message = json!({ "message": shortened(text) });
        emit("agent:start", message.clone()).await;
        let mut reader = self.shared.engine.follow(&tenant, &id, Start::Now).await.unwrap();
        let said = UserEvent::Message(UserMessage::new(vec![Block::text(text)]));
        self.shared.engine.send(&tenant, &id, vec![said]).await.unwrap();
        let (mut tools, mut answer) = (Vec::new(), String::new());
        loop {
            let item = within("the turn", reader.next()).await.unwrap();
            let Some(Item::Durable(event)) = item else { continue };
            match &event.payload {
                Payload::ModelStarted(started) => {
                    emit("agent:step", json!({ "iteration": started.call, "tool_names": tools })).await;
                    tools.clear();
                }
                Payload::ToolUse(call) => tools.push(call.tool.clone()),
                Payload::AgentMessage(message) => answer.clone_from(&message.text),
                Payload::StatusIdle(idle) if matches!(idle.stop_reason, StopReason::EndTurn { .. }) => break,
                _ => {}
            }
        }
        let mut ended = object(message);
        ended.insert("response".to_owned(), shortened(&answer).into());
        emit("agent:end", Value::Object(ended)).await;
        answer
    }

    /// The session of a chat; a new one if there is none.
    async fn session(&self, chat_id: &str) -> SessionId {
        let known = self.shared.sessions.lock().unwrap().get(chat_id).cloned();
        if let Some(id) = known {
            return id;
        }
        let new = NewSession { platform: PLATFORM.to_owned(), ..NewSession::default() };
        let tenant = TenantId::default_tenant();
        let record = self.shared.engine.create_session(&tenant, &self.shared.agent_id, new).await.unwrap();
        let id = record.header.id;
        self.shared.sessions.lock().unwrap().insert(chat_id.to_owned(), id.clone());
        let context = json!({
            "platform": PLATFORM, "user_id": "user", "session_id": id, "session_key": key(chat_id),
        });
        self.shared.hosts.emit("session:start", object(context)).await;
        id
    }
}

impl Gateway for Loopback {
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<Value, String>> {
        self.shared.sent.lock().unwrap().push(message);
        std::future::ready(Ok(json!({ "success": true, "message_id": "1" }))).boxed()
    }

    fn append_to_transcript(&self, session_id: String, message: Value) -> BoxFuture<'_, Result<(), String>> {
        async move {
            let id: SessionId = session_id.parse().map_err(|error| format!("{error}"))?;
            // It waits for the next turn, and starts none.
            let message = message["content"].as_str().unwrap_or_default().to_owned();
            let steer = UserEvent::Steer(UserSteer { message });
            let tenant = TenantId::default_tenant();
            let sent = self.shared.engine.send(&tenant, &id, vec![steer]).await;
            sent.map(drop).map_err(|error| error.to_string())
        }
        .boxed()
    }

    fn session_of_chat(&self, source: Value) -> BoxFuture<'_, Result<Value, String>> {
        async move {
            let chat_id = source["chat_id"].as_str().unwrap_or_default();
            Ok(json!({ "session_id": self.session(chat_id).await, "session_key": key(chat_id) }))
        }
        .boxed()
    }
}

fn key(chat_id: &str) -> String {
    format!("agent:main:{PLATFORM}:dm:{chat_id}")
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
