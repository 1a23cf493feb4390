//! A turn that is a run of a routine.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Phase, State, Turn};
use crate::event::{Payload, StopReason, ToolUse, joined_text};
use crate::ids::{RoutineId, RunId};
use crate::run::{EMIT_OUTPUT, RunJob};

/// A turn that is a run of a routine: nobody is there to answer, and a call of `emit_output` ends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRun {
    /// The run.
    pub run_id: RunId,
    /// The routine.
    pub routine_id: RoutineId,
    /// What is to be done, and within which bounds.
    pub job: RunJob,
    /// The tools of MCP servers that were called, by their names for the model, as `server:tool`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_tools: BTreeMap<String, String>,
    /// The first tool call that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_tool: Option<FailedTool>,
    /// How the turn ends, once the run is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<StopReason>,
}

/// A tool call that failed in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedTool {
    /// The tool, as it is called outside: `built-in:<tool>` or `<MCP server>:<tool>`.
    pub tool_id: String,
    /// What the model was told.
    pub text: String,
}

impl State {
    /// Takes an event into account that is about the run under way.
    pub(super) fn apply_to_run(&mut self, payload: &Payload) {
        let Some(turn) = &mut self.turn else { return };
        match payload {
            Payload::RunOpened(opened) => {
                turn.run = Some(Box::new(TurnRun {
                    run_id: opened.run_id.clone(),
                    routine_id: opened.routine_id.clone(),
                    job: opened.job.clone(),
                    mcp_tools: BTreeMap::new(),
                    failed_tool: None,
                    settled: None,
                }));
            }
            // The model is called again as if the turn had just opened.
            Payload::RunReminded(_) => turn.phase = Phase::Opening,
            Payload::RunSettled(settled) => {
                if let Some(run) = &mut turn.run {
                    run.settled = Some(settled.outcome.stop_reason());
                }
            }
            _ => {}
        }
    }
}

impl Turn {
    /// Remembers the first call of a run that failed. What is wrong with a call of `emit_output` may be corrected.
    pub(super) fn note_failed_tool(&mut self, payload: &Payload) {
        let Some(run) = self.run.as_mut().filter(|run| run.failed_tool.is_none()) else { return };
        let result = match payload {
            Payload::McpToolUse(ToolUse { tool, mcp: Some(mcp), .. }) => {
                run.mcp_tools.insert(tool.clone(), format!("{}:{}", mcp.server, mcp.tool));
                return;
            }
            Payload::ToolResult(result) | Payload::McpToolResult(result) => result,
            _ => return,
        };
        if result.is_error && result.tool != EMIT_OUTPUT {
            let of_server = run.mcp_tools.get(&result.tool).cloned();
            let tool_id = of_server.unwrap_or_else(|| format!("built-in:{}", result.tool));
            run.failed_tool = Some(FailedTool { tool_id, text: joined_text(&result.content) });
        }
    }
}
