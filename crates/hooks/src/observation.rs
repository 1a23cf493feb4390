//! What hooks can only watch.

use petasos_core::ids::SessionId;
use petasos_core::model::{Message, Usage};
use serde_json::{Map, Value};

use crate::event::HookEvent;

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
    /// The reasons for programs: keys of command patterns, or `tool:<name>`. The first is the main one.
    pub pattern_keys: Vec<String>,
}
