//! What a turn tells user code, and what it asks it.
//!
//! Each point of a turn is one named call. Whoever answers must keep time limits of its own, because a turn waits for
//! the calls that return something, and for `post_tool_call`. If one of them hangs all the same, interrupting the turn
//! drops it.

use std::path::PathBuf;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::model::{Message, Usage};
use serde_json::{Map, Value};

use crate::event::HookEvent;

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

/// What a hook can only watch.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// `on_session_start`: the first turn of a session begins.
    SessionStart,
    /// `pre_api_request`: a request goes out to the model's provider.
    PreApiRequest {
        /// Which call of the turn it is.
        call: u32,
        /// How many messages it has.
        messages: usize,
        /// How many tools are on offer.
        tools: usize,
    },
    /// `post_api_request`: the provider answered.
    PostApiRequest {
        /// Which call of the turn it was.
        call: u32,
        /// What it cost.
        usage: Usage,
        /// How long it took.
        duration_ms: u64,
    },
    /// `api_request_error`: an attempt failed.
    ApiRequestError {
        /// Which call of the turn it was.
        call: u32,
        /// Why.
        message: String,
        /// Whether it is tried again.
        retrying: bool,
    },
    /// `post_tool_call`: a tool ended, or was blocked or denied, or somebody outside answered for it.
    PostToolCall {
        /// The call.
        tool_use_id: String,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Map<String, Value>,
        /// What came of it.
        result: String,
        /// How it ended.
        status: CallStatus,
        /// How long it took.
        duration_ms: u64,
    },
    /// `pre_approval_request`: a person is asked.
    PreApprovalRequest(Approval),
    /// `post_approval_response`: the person answered.
    PostApprovalResponse {
        /// What they were asked.
        approval: Approval,
        /// `once`, `session`, `always`, `deny` or `timeout`.
        choice: &'static str,
    },
    /// `post_llm_call`: the turn has its final text.
    PostLlmCall {
        /// What the user had said.
        user_message: String,
        /// The text.
        text: String,
        /// The conversation, the text included.
        history: Vec<Message>,
    },
    /// `on_session_end`: a turn is over.
    SessionEnd {
        /// Whether it ended as it should.
        completed: bool,
        /// Whether a user interrupted it.
        interrupted: bool,
    },
    /// `on_session_finalize`: the session is archived, deleted or replaced.
    SessionFinalize,
    /// `on_session_reset`: this session took the place of another in its chat.
    SessionReset {
        /// The session that was there before, if there was one.
        old_session_id: Option<SessionId>,
    },
    /// `subagent_start`: a subagent begins.
    SubagentStart {
        /// The subagent's own session.
        child_session_id: SessionId,
        /// What it is to do.
        goal: String,
    },
    /// `subagent_stop`: a subagent has ended.
    SubagentStop {
        /// The subagent's own session.
        child_session_id: SessionId,
        /// What it said last.
        summary: String,
        /// `completed`, `failed`, `interrupted` or `error`.
        status: &'static str,
        /// How long it took.
        duration_ms: u64,
    },
}

impl Observation {
    /// The event that it is.
    pub fn event(&self) -> HookEvent {
        match self {
            Observation::SessionStart => HookEvent::OnSessionStart,
            Observation::PreApiRequest { .. } => HookEvent::PreApiRequest,
            Observation::PostApiRequest { .. } => HookEvent::PostApiRequest,
            Observation::ApiRequestError { .. } => HookEvent::ApiRequestError,
            Observation::PostToolCall { .. } => HookEvent::PostToolCall,
            Observation::PreApprovalRequest(_) => HookEvent::PreApprovalRequest,
            Observation::PostApprovalResponse { .. } => HookEvent::PostApprovalResponse,
            Observation::PostLlmCall { .. } => HookEvent::PostLlmCall,
            Observation::SessionEnd { .. } => HookEvent::OnSessionEnd,
            Observation::SessionFinalize => HookEvent::OnSessionFinalize,
            Observation::SessionReset { .. } => HookEvent::OnSessionReset,
            Observation::SubagentStart { .. } => HookEvent::SubagentStart,
            Observation::SubagentStop { .. } => HookEvent::SubagentStop,
        }
    }
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallStatus {
    /// The tool did what it should.
    Ok,
    /// It failed, or a person did not allow it.
    Error,
    /// It never ran: a hook or a rule was against it.
    Blocked,
}

/// What a person is asked to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool: String,
    /// The command, or what else the call would do.
    pub command: String,
    /// Why they are asked.
    pub description: String,
    /// The reason for programs: the key of a command pattern, or `tool:<name>`.
    pub pattern_key: String,
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

/// No user code at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn is_empty(&self) -> bool {
        true
    }

    fn observe<'a>(&'a self, _: &'a TurnInfo, _: Observation) -> BoxFuture<'a, ()> {
        std::future::ready(()).boxed()
    }

    fn pre_llm_call<'a>(&'a self, _: &'a TurnInfo, _: TurnStart<'a>) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn pre_tool_call<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: ToolCall<'a>,
        _: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_tool_result<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: ToolResult<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_terminal_output<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: TerminalOutput<'a>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_llm_output<'a>(&'a self, _: &'a TurnInfo, _: &'a str) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }
}
