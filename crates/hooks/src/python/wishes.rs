//! What user code may ask of the server, and who grants it.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;
use petasos_core::ids::TenantId;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::message::Wish;
use crate::contract::SessionRef;

/// Said to code that asks before there are sessions, or in a command of its own.
const NO_SERVER: &str = "there are no sessions here: the server is still starting, or none runs";

/// Calls a tool by name, with arguments, for the session that user code runs for.
pub type CallTool =
    Arc<dyn Fn(String, Map<String, Value>) -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// For whom user code runs.
#[derive(Clone, Default)]
pub struct Caller {
    /// The session, if there is one.
    pub session: Option<SessionRef>,
    /// How tools are called from within a tool call; none outside of one.
    pub call_tool: Option<CallTool>,
}

/// What plugins can have done to sessions.
pub trait Sessions: Send + Sync + 'static {
    /// Calls a tool as the session's model would. What would have to ask a person fails.
    fn call_tool(
        &self,
        session: SessionRef,
        tool: String,
        input: Map<String, Value>,
    ) -> BoxFuture<'_, Result<String, String>>;

    /// Runs a turn of an agent that nobody attends, in the tenant `default`. The answer has `final_response`,
    /// `session_id`, `completed` and what else callers know of a turn.
    fn run_agent(&self, turn: AgentTurn) -> BoxFuture<'_, Result<Value, String>>;

    /// Says something to a session as its user: a steer while a turn is under way, else a new turn.
    fn say(&self, session: SessionRef, text: String) -> BoxFuture<'_, Result<(), String>>;
}

/// A turn that user code has an agent run.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentTurn {
    /// What the agent is told.
    pub text: String,
    /// `provider/model`.
    pub model: String,
    /// What hooks are told of where the session runs.
    pub platform: String,
    /// The agent's instructions.
    #[serde(default)]
    pub instructions: Option<String>,
    /// How many model calls it may make; as many as any turn if none is given.
    #[serde(default)]
    pub most_calls: Option<u32>,
    /// The session that it goes on in; a new one if none is named.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// What plugins can have done by the messaging gateway.
pub trait Gateway: Send + Sync + 'static {
    /// Sends a message to a chat. The answer has `success` and, where there is one, `message_id`.
    fn send(&self, message: OutgoingMessage) -> BoxFuture<'_, Result<Value, String>>;

    /// Adds a message to a session without starting a turn.
    fn append_to_transcript(&self, session_id: String, message: Value) -> BoxFuture<'_, Result<(), String>>;

    /// The session of a chat, as an object with `session_id` and `session_key`.
    fn session_of_chat(&self, source: Value) -> BoxFuture<'_, Result<Value, String>>;
}

/// A message that a plugin sends to a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct OutgoingMessage {
    /// The channel.
    pub platform: String,
    /// The chat there.
    pub chat_id: String,
    /// The text.
    pub content: String,
    /// The message that it answers, if any.
    pub reply_to: Value,
    /// What else the platform is told.
    pub metadata: Value,
}

/// Who grants wishes. The engine and the gateway come to be after the plugins that need them.
#[derive(Default)]
pub(super) struct Wishes {
    pub(super) sessions: OnceLock<Arc<dyn Sessions>>,
    pub(super) default_model: OnceLock<String>,
    pub(super) gateway: OnceLock<Arc<dyn Gateway>>,
}

impl Wishes {
    /// Does what user code asks for.
    pub(super) async fn grant(&self, caller: Caller, wish: Wish) -> Result<Value, String> {
        match wish {
            Wish::DispatchTool { name, args } => match (caller.call_tool, caller.session) {
                (Some(call_tool), _) => call_tool(name, args).await.map(Value::String),
                (None, Some(session)) => {
                    self.sessions()?.call_tool(session, name, args).await.map(Value::String)
                }
                (None, None) => Err("tools can be called only while a session is being served".to_owned()),
            },
            Wish::RunAgent(turn) => self.sessions()?.run_agent(turn).await,
            Wish::DefaultModel => self
                .default_model
                .get()
                .map(|model| model.as_str().into())
                .ok_or_else(|| NO_SERVER.to_owned()),
            Wish::InjectMessage { text, session_id } => {
                let session = addressed(caller.session, session_id)?;
                self.sessions()?.say(session, text).await.map(|()| true.into())
            }
            Wish::GatewaySend { platform, chat_id, content, reply_to, metadata } => {
                let message = OutgoingMessage { platform, chat_id, content, reply_to, metadata };
                self.gateway()?.send(message).await
            }
            Wish::AppendToTranscript { session_id, message } => {
                self.gateway()?.append_to_transcript(session_id, message).await.map(|()| Value::Null)
            }
            Wish::SessionOfChat { source } => self.gateway()?.session_of_chat(source).await,
        }
    }

    fn sessions(&self) -> Result<&Arc<dyn Sessions>, String> {
        self.sessions.get().ok_or_else(|| NO_SERVER.to_owned())
    }

    fn gateway(&self) -> Result<&Arc<dyn Gateway>, String> {
        self.gateway.get().ok_or_else(|| "there is no messaging gateway".to_owned())
    }
}

/// The session that a message goes to: the one that is named, else that of the call under way. Plugins know sessions
/// of the call's tenant, or of the tenant `default`.
fn addressed(current: Option<SessionRef>, named: Option<String>) -> Result<SessionRef, String> {
    let Some(named) = named else {
        return current.ok_or_else(|| "no session is being served here; name one by session_id".to_owned());
    };
    let session_id = named.parse().map_err(|error| format!("{error}"))?;
    let tenant = current.map_or_else(TenantId::default_tenant, |session| session.tenant);
    Ok(SessionRef { tenant, session_id })
}
