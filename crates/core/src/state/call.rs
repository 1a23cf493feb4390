//! One tool call of the step under way.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::budget::Budget;
use crate::event::{Danger, ToolEffect, ToolUse};
use crate::grant::CommandGrant;

/// One tool call of the step under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool-use id, or the request id of a question.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Who carries it out.
    pub kind: CallKind,
    /// Its arguments.
    pub input: Map<String, Value>,
    /// Whether it changes anything.
    pub effect: ToolEffect,
    /// Whether it was ever put to a person, so that it starts only with the others that were.
    pub asked: bool,
    /// A sudo password that it needs.
    pub sudo: Option<SudoNeed>,
    /// How far it is.
    pub progress: Progress,
    /// When the model asked for it.
    pub created_at: Timestamp,
    /// One line for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
    /// Why a person is asked, when it is not the policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
    /// Patterns of commands that a person may allow in place of the whole tool, the narrowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// The budget that is used up, if the call asks whether to go on all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The subagents that it gave work to, and whether they are done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, bool>,
}

/// Who carries out a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// We do.
    Builtin,
    /// An MCP server does.
    Mcp,
    /// The application does.
    Custom,
    /// The user answers a question.
    Clarify,
    /// The user supplies a secret.
    Secret,
}

/// A sudo password that a call needs before it can start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SudoNeed {
    /// What the answer refers to.
    pub request_id: String,
    /// The command.
    pub command: String,
    /// Whether the password came.
    pub answered: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Somebody outside has to answer.
    Waiting,
    /// It may start.
    Ready,
    /// A person said no.
    Denied {
        /// Why.
        reason: Option<String>,
    },
    /// Its start is in the log.
    Started,
    /// Its result is in the log.
    Done,
}

impl Call {
    /// What is remembered when a person allows it for longer than this once.
    pub fn grants(&self) -> Vec<String> {
        self.danger.as_ref().map_or_else(|| vec![self.tool.clone()], |danger| danger.grants().collect())
    }

    /// What is remembered when a person allows commands of a pattern for longer than this once.
    pub fn command_grant(&self, pattern: &str) -> CommandGrant {
        let dangers = self.danger.iter().flat_map(Danger::pattern_keys).map(str::to_owned).collect();
        CommandGrant { tool: self.tool.clone(), pattern: pattern.to_owned(), dangers }
    }

    pub(super) fn of_tool(kind: CallKind, tool_use: &ToolUse, created_at: Timestamp) -> Self {
        Call {
            id: tool_use.id.as_str().to_owned(),
            tool: tool_use.tool.clone(),
            kind,
            input: tool_use.input.clone(),
            effect: tool_use.effect,
            asked: tool_use.requires_action,
            sudo: None,
            progress: if tool_use.requires_action { Progress::Waiting } else { Progress::Ready },
            created_at,
            preview: tool_use.preview.clone(),
            danger: tool_use.danger.clone(),
            patterns: tool_use.patterns.clone(),
            budget: tool_use.budget,
            threads: BTreeMap::new(),
        }
    }

    pub(super) fn of_question(
        kind: CallKind,
        id: &str,
        tool: &str,
        input: Map<String, Value>,
        created_at: Timestamp,
    ) -> Self {
        Call {
            id: id.to_owned(),
            tool: tool.to_owned(),
            kind,
            input,
            effect: ToolEffect::ReadOnly,
            asked: true,
            sudo: None,
            progress: Progress::Waiting,
            created_at,
            preview: None,
            danger: None,
            patterns: Vec::new(),
            budget: None,
            threads: BTreeMap::new(),
        }
    }
}
