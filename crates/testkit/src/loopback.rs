//! A messaging channel without a platform: what a test says in a chat goes through the gateway's hooks to a session.
//!
//! It fires every gateway event, in the order in which a real channel must.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{Block, Payload, StopReason, UserMessage, UserSteer, joined_text};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, Item, NewSession, Start};
use petasos_hooks::python::{Caller, Gateway, OutgoingMessage, PythonHosts};
use petasos_hooks::{
    Bus, ChatSource, CommandVerdict, Dispatch, GatewayEvents, Incoming, SessionRef, UsedTool,
};
use serde_json::{Value, json};

use crate::within;

/// What a platform is called here.
pub const PLATFORM: &str = "loopback";

/// The channel. Cheap to clone.
#[derive(Clone)]
pub struct Loopback {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    events: GatewayEvents,
    hosts: PythonHosts,
    agent_id: AgentId,
    sessions: Mutex<HashMap<String, ChatSession>>,
    sent: Mutex<Vec<OutgoingMessage>>,
}

/// The session of a chat.
#[derive(Clone)]
struct ChatSession {
    id: SessionId,
    /// Whether hooks have heard of it.
    is_known: bool,
}

impl Loopback {
    /// A channel to an agent. Plugins find it as their gateway.
    pub fn new(engine: &Engine, bus: Arc<Bus>, hosts: &PythonHosts, agent_id: &str) -> Self {
        let shared = Shared {
            engine: engine.clone(),
            events: GatewayEvents::new(bus, hosts.clone(), vec![PLATFORM.to_owned()]),
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
        self.receive(chat_id, text, Written::ByUser).await
    }

    /// The gateway itself has something for a chat, as when a command in the background has ended.
    pub async fn notify(&self, chat_id: &str, text: &str) -> Option<String> {
        self.receive(chat_id, text, Written::ByUs).await
    }

    async fn receive(&self, chat_id: &str, text: &str, written: Written) -> Option<String> {
        let message = Incoming {
            text: text.to_owned(),
            source: source(chat_id),
            message_id: "1".to_owned(),
            internal: written == Written::ByUs,
        };
        let text = match self.shared.events.received(&message).await {
            Dispatch::Skip { .. } => return None,
            Dispatch::Rewrite { text } => text,
            Dispatch::Allow => message.text,
        };
        match text.strip_prefix('/') {
            Some(command) => self.command(&message.source, command).await,
            None => Some(self.turn(&message.source, &text).await),
        }
    }

    /// Runs a slash command, unless a hook decides otherwise.
    async fn command(&self, source: &ChatSource, command: &str) -> Option<String> {
        let (name, args) = command.split_once(' ').unwrap_or((command, ""));
        let (name, args) = match self.shared.events.command(source, name, args).await {
            CommandVerdict::Stop(told) => return told,
            CommandVerdict::CarryOut { name, args } => (name, args),
        };
        if name == "new" {
            self.reset(source).await;
            return Some("A new session.".to_owned());
        }
        let known = self.shared.sessions.lock().unwrap().get(&source.chat_id).cloned();
        let session =
            known.map(|known| SessionRef { tenant: TenantId::default_tenant(), session_id: known.id });
        let caller = Caller { session, call_tool: None };
        self.shared.hosts.run_command(&name, &args, caller).await.unwrap_or_else(Some)
    }

    async fn reset(&self, source: &ChatSource) {
        let Shared { engine, events, agent_id, sessions, .. } = &*self.shared;
        let old = sessions.lock().unwrap().remove(&source.chat_id).map(|session| session.id);
        let tenant = TenantId::default_tenant();
        let record = engine.replace_session(&tenant, old.as_ref(), agent_id, new_session()).await.unwrap();
        let session = ChatSession { id: record.header.id, is_known: false };
        sessions.lock().unwrap().insert(source.chat_id.clone(), session);
        events.session_reset(source, &key(&source.chat_id)).await;
    }

    /// Runs a turn with the chat's session, and tells gateway hooks of its steps.
    async fn turn(&self, source: &ChatSource, text: &str) -> String {
        let Shared { engine, events, .. } = &*self.shared;
        let tenant = TenantId::default_tenant();
        let id = self.session(source).await;
        events.agent_started(source, &id, text).await;
        let mut reader = engine.follow(&tenant, &id, Start::Now).await.unwrap();
        let said = UserEvent::Message(UserMessage::new(vec![Block::text(text)]));
        engine.send(&tenant, &id, vec![said]).await.unwrap();
        let (mut ids, mut tools, mut answer) = (Vec::new(), Vec::<UsedTool>::new(), String::new());
        loop {
            let item = within("the turn", reader.next()).await.unwrap();
            let Some(Item::Durable(event)) = item else { continue };
            match &event.payload {
                Payload::ModelStarted(started) => {
                    events.agent_step(source, &id, started.call, &tools).await;
                    tools.clear();
                    ids.clear();
                }
                Payload::ToolUse(call) => {
                    ids.push(call.id.to_string());
                    let (name, arguments) = (call.tool.clone(), call.input.clone());
                    tools.push(UsedTool { name, result: None, arguments });
                }
                Payload::ToolResult(result) => {
                    let index = ids.iter().position(|id| id == result.tool_use_id.as_str());
                    if let Some(tool) = index.and_then(|index| tools.get_mut(index)) {
                        tool.result = Some(joined_text(&result.content));
                    }
                }
                Payload::AgentMessage(message) => answer.clone_from(&message.text),
                Payload::StatusIdle(idle) if matches!(idle.stop_reason, StopReason::EndTurn { .. }) => break,
                _ => {}
            }
        }
        events.agent_ended(source, &id, text, &answer).await;
        answer
    }

    /// The session of a chat, of which hooks have heard; a new one if there is none.
    async fn session(&self, source: &ChatSource) -> SessionId {
        let Shared { engine, events, agent_id, sessions, .. } = &*self.shared;
        let known = sessions.lock().unwrap().get(&source.chat_id).cloned();
        let session = match known {
            Some(session) => session,
            None => {
                let tenant = TenantId::default_tenant();
                let record = engine.create_session(&tenant, agent_id, new_session()).await.unwrap();
                ChatSession { id: record.header.id, is_known: false }
            }
        };
        let known = ChatSession { id: session.id.clone(), is_known: true };
        sessions.lock().unwrap().insert(source.chat_id.clone(), known);
        if !session.is_known {
            events.session_started(source, &session.id, &key(&source.chat_id)).await;
        }
        session.id
    }
}

/// Who wrote a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    ByUser,
    ByUs,
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

    fn session_of_chat(&self, about: Value) -> BoxFuture<'_, Result<Value, String>> {
        async move {
            let chat_id = about["chat_id"].as_str().unwrap_or_default();
            Ok(json!({ "session_id": self.session(&source(chat_id)).await, "session_key": key(chat_id) }))
        }
        .boxed()
    }
}

fn source(chat_id: &str) -> ChatSource {
    ChatSource {
        platform: PLATFORM.to_owned(),
        chat_id: chat_id.to_owned(),
        chat_type: "dm".to_owned(),
        user_id: "user".to_owned(),
        ..ChatSource::default()
    }
}

fn new_session() -> NewSession {
    NewSession { platform: PLATFORM.to_owned(), ..NewSession::default() }
}

fn key(chat_id: &str) -> String {
    format!("agent:main:{PLATFORM}:dm:{chat_id}")
}
