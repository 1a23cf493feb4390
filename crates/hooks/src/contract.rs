//! What a turn tells user code, and what it asks it.
//!
//! Each point of a turn is one named call. Whoever answers must keep time limits of its own, because a turn waits for
//! the calls that return something, and for `post_tool_call`. If one of them hangs all the same, interrupting the turn
//! drops it.

use std::path::PathBuf;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::model::Message;
use serde_json::{Map, Value};

use crate::event::HookEvent;
use crate::observation::Observation;

/// A session, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRef {
    /// Whose it is.
    pub tenant: TenantId,
    /// Its id.
    pub session_id: SessionId,
}

/// The turn that a hook is told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInfo {
    /// Whose session it is.
    pub tenant: TenantId,
    /// The session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_id: AgentId,
    /// The user, if the session has one.
    pub user_id: Option<String>,
    /// The id of the message that opened the turn; empty outside a turn.
    pub turn_id: String,
    /// The surface or channel of the session.
    pub platform: String,
    /// `provider/model`.
    pub model: String,
    /// Where the session's tools work, and command hooks run. It may not be there yet.
    pub workspace: PathBuf,
}

/// The beginning of a turn.
#[derive(Debug, Clone, Copy)]
pub struct TurnStart<'a> {
    /// What the user said.
    pub user_message: &'a str,
    /// The conversation, that included.
    pub history: &'a [Message],
    /// Whether it is the first turn of its session.
    pub is_first_turn: bool,
}

/// A tool call that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct ToolCall<'a> {
    /// Names the call.
    pub tool_use_id: &'a str,
    /// The tool.
    pub tool: &'a str,
}

/// What came of a tool call.
#[derive(Debug, Clone, Copy)]
pub struct ToolResult<'a> {
    /// Names the call.
    pub tool_use_id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub input: &'a Map<String, Value>,
    /// Its text.
    pub result: &'a str,
    /// How long it took.
    pub duration_ms: u64,
}

/// What a command in the foreground wrote.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOutput<'a> {
    /// The command.
    pub command: &'a str,
    /// All that it wrote.
    pub output: &'a str,
    /// What it returned.
    pub exit_code: i32,
    /// Where it ran.
    pub directory: &'a str,
}

/// What is to be done about a message that a channel received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dispatch {
    /// Handle it as usual.
    Allow,
    /// Drop it: a hook has taken care of it.
    Skip {
        /// Why, for the log.
        reason: String,
    },
    /// Go on with another text.
    Rewrite {
        /// The text.
        text: String,
    },
}

/// User code at the points of a turn.
pub trait Hooks: Send + Sync + 'static {
    /// Whether there is no user code at all, so that nobody need be told or asked.
    fn is_empty(&self) -> bool {
        false
    }

    /// What is wrong with user code, for people who look after the server.
    fn problems(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether somebody wants to hear of an event, so that what it takes to tell is worth putting together.
    fn wants(&self, _event: HookEvent) -> bool {
        !self.is_empty()
    }

    /// Waits until whatever nobody waits for has ended, as when the program is about to.
    fn settled(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }

    /// Tells about something that cannot be changed. The turn waits for `PostToolCall` alone; everything else is
    /// told beside the turn, for each session one thing after another and in the order in which it happened.
    fn observe<'a>(&'a self, turn: &'a TurnInfo, observation: Observation) -> BoxFuture<'a, ()>;

    /// `pre_llm_call`: once per turn, and again in a turn that goes on after a restart. The text follows the user's
    /// own in every model call of the turn.
    fn pre_llm_call<'a>(&'a self, turn: &'a TurnInfo, start: TurnStart<'a>) -> BoxFuture<'a, Option<String>>;

    /// `pre_tool_call`: before permission is asked. A message blocks the call.
    fn pre_tool_call<'a>(
        &'a self,
        turn: &'a TurnInfo,
        call: ToolCall<'a>,
        input: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>>;

    /// `transform_tool_result`: a text replaces the result.
    fn transform_tool_result<'a>(
        &'a self,
        turn: &'a TurnInfo,
        result: ToolResult<'a>,
    ) -> BoxFuture<'a, Option<String>>;

    /// `transform_terminal_output`: a text replaces what a command wrote.
    fn transform_terminal_output<'a>(
        &'a self,
        turn: &'a TurnInfo,
        output: TerminalOutput<'a>,
    ) -> BoxFuture<'a, Option<String>>;

    /// `transform_llm_output`: a text replaces the turn's final one.
    fn transform_llm_output<'a>(&'a self, turn: &'a TurnInfo, text: &'a str)
    -> BoxFuture<'a, Option<String>>;
}
