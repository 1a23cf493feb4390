//! What every tool is.

use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::model::ToolSpec;
use serde_json::{Map, Value};

/// Something that the model can call and we carry out.
pub trait Tool: Send + Sync + 'static {
    /// How the model is told about it.
    fn spec(&self) -> ToolSpec;

    /// Whether running it twice could do harm.
    fn effect(&self) -> ToolEffect;

    /// One line for a person who is asked to allow a call.
    fn preview(&self, input: &Map<String, Value>) -> Option<String>;

    /// Carries out one call. Dropping the future stops it.
    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput>;
}

/// One call, and for whom it is made.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The arguments.
    pub input: Map<String, Value>,
    /// Whose session it is.
    pub tenant: TenantId,
    /// The session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_id: AgentId,
    /// The user, if the session has one.
    pub user_id: Option<String>,
}

/// What the model is told about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The result.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result.
    pub fn ok(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), is_error: false }
    }

    /// A failure that the model can react to.
    pub fn error(text: impl Into<String>) -> Self {
        ToolOutput { text: text.into(), is_error: true }
    }
}
