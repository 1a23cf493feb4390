//! A model's answer, with what is to be done about each of its calls.

use serde_json::{Map, Value};

use crate::event::{Danger, McpTool, ToolEffect};
use crate::ids::{RequestId, ToolUseId};
use crate::model::{Opaque, Stop, Usage};
use crate::run::RunError;

/// A model's answer, with what is to be done about each of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAnswer {
    /// What it said, in order.
    pub parts: Vec<PlannedPart>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: Stop,
    /// Whether one of its calls is not whole, because it ended at its limit.
    pub has_cut_call: bool,
    /// What the provider wants back with each of its calls, in their order; it may be shorter.
    pub call_data: Vec<Option<Opaque>>,
    /// Settings that the request had no field for.
    pub left_out: Vec<&'static str>,
    /// Whether `session.typing` comes before its text, if that was not announced while it was on its way.
    pub shows_typing: bool,
}

/// A part of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedPart {
    /// Reasoning.
    Thinking {
        /// The readable part.
        text: String,
        /// What the provider wants back.
        opaque: Option<Opaque>,
    },
    /// Text.
    Text(String),
    /// A tool call.
    Call(PlannedCall),
}

/// A tool call, with what is to be done about it.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedCall {
    /// We or an MCP server can carry it out.
    Tool {
        /// Names the call.
        id: ToolUseId,
        /// Whose tool it is.
        kind: ToolKind,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Map<String, Value>,
        /// Whether it changes anything.
        effect: ToolEffect,
        /// One line for people.
        preview: Option<String>,
        /// Whether it may run.
        permission: Permission,
        /// Patterns of commands that a person may allow in place of the whole tool, the narrowest first.
        patterns: Vec<String>,
        /// A sudo password that it needs.
        sudo: Option<(RequestId, String)>,
    },
    /// The application carries it out.
    Custom {
        /// Names the call.
        id: ToolUseId,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Map<String, Value>,
    },
    /// The user is asked.
    Clarify {
        /// Names the question.
        request_id: RequestId,
        /// The question.
        question: String,
        /// Offered answers.
        choices: Option<Vec<String>>,
    },
    /// The user is asked for a secret.
    Secret {
        /// Names the request.
        request_id: RequestId,
        /// The environment variable that will hold it.
        name: String,
        /// What to tell the user.
        prompt: String,
    },
    /// The output of a run.
    Output {
        /// Names the call.
        id: ToolUseId,
        /// Its arguments.
        input: Map<String, Value>,
        /// What they come to.
        emitted: Emitted,
    },
}

/// What a call of `emit_output` comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Emitted {
    /// Output that fits.
    Fits(Map<String, Value>),
    /// Output that does not fit its schema. The run fails.
    Breaks(RunError),
    /// No output at all. The model is told why, and may call again.
    Unreadable(String),
}

/// Whose tool a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolKind {
    /// Ours.
    Builtin,
    /// An MCP server's.
    Mcp(McpTool),
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It runs.
    Run,
    /// A person decides, unless the tool was allowed for the session.
    Ask,
    /// A person decides, unless all of this danger was allowed for the session.
    AskAbout(Danger),
    /// It never runs, and the model is told why.
    Refuse(String),
}
