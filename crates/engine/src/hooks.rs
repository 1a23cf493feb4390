//! The points of a turn where user code may take part.
//!
//! Each point is one named call in the loop. Nothing is plugged in yet but [`NoHooks`]; whatever is must keep its
//! own time limits, because a turn waits for the four calls that return something, and for `post_tool_call`. If
//! one of them hangs all the same, interrupting the turn drops it.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::model::Usage;
use serde_json::{Map, Value};

/// The turn that a hook is told about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnInfo {
    /// The session.
    pub session_id: SessionId,
    /// The agent.
    pub agent_id: AgentId,
    /// The user, if the session has one.
    pub user_id: Option<String>,
    /// The id of the message that opened the turn.
    pub turn_id: String,
    /// The surface or channel of the session.
    pub platform: String,
    /// `provider/model`.
    pub model: String,
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
        /// Whether it failed.
        is_error: bool,
        /// How long it took.
        duration_ms: u64,
    },
    /// `pre_approval_request`: a person is asked.
    PreApprovalRequest {
        /// The call.
        tool_use_id: String,
        /// The tool.
        tool: String,
    },
    /// `post_approval_response`: the person answered.
    PostApprovalResponse {
        /// The call.
        tool_use_id: String,
        /// `once`, `session`, `always` or `deny`.
        choice: &'static str,
    },
    /// `post_llm_call`: the turn has its final text.
    PostLlmCall {
        /// The text.
        text: String,
    },
    /// `on_session_end`: a turn is over.
    SessionEnd {
        /// Whether it ended as it should.
        completed: bool,
        /// Whether a user interrupted it.
        interrupted: bool,
    },
    /// `on_session_finalize`: the session is archived or deleted.
    SessionFinalize,
}

/// User code at the points of a turn.
pub trait Hooks: Send + Sync + 'static {
    /// Whether there is no user code at all, so that nobody need be told or asked.
    fn is_empty(&self) -> bool {
        false
    }

    /// Tells about something that cannot be changed. The turn waits for `PostToolCall` alone; everything else is
    /// told beside the turn, for each session one thing after another and in the order in which it happened.
    fn observe<'a>(&'a self, turn: &'a TurnInfo, observation: Observation) -> BoxFuture<'a, ()>;

    /// `pre_llm_call`: once per turn, and again in a turn that goes on after a restart. The text follows the user's
    /// own in every model call of the turn.
    fn pre_llm_call<'a>(&'a self, turn: &'a TurnInfo) -> BoxFuture<'a, Option<String>>;

    /// `pre_tool_call`: before permission is asked. A message blocks the call.
    fn pre_tool_call<'a>(
        &'a self,
        turn: &'a TurnInfo,
        tool: &'a str,
        input: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>>;

    /// `transform_tool_result`: a text replaces the result.
    fn transform_tool_result<'a>(
        &'a self,
        turn: &'a TurnInfo,
        tool: &'a str,
        result: &'a str,
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

    fn pre_llm_call<'a>(&'a self, _: &'a TurnInfo) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn pre_tool_call<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: &'a str,
        _: &'a mut Map<String, Value>,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_tool_result<'a>(
        &'a self,
        _: &'a TurnInfo,
        _: &'a str,
        _: &'a str,
    ) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }

    fn transform_llm_output<'a>(&'a self, _: &'a TurnInfo, _: &'a str) -> BoxFuture<'a, Option<String>> {
        std::future::ready(None).boxed()
    }
}
