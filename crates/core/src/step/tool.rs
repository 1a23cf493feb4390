//! What tool calls report: work that they give to subagents, and how they end.

use crate::event::{Block, Payload, ThreadMessage, ToolResult, ToolResultTransformed};
use crate::ids::ToolUseId;
use crate::state::{CallKind, Phase, Progress, Turn};

use super::Step;

/// A call and what the model is told about it.
pub(super) struct FinishedCall<'a> {
    pub(super) id: &'a str,
    pub(super) tool: &'a str,
    pub(super) kind: CallKind,
    pub(super) content: Vec<Block>,
    pub(super) is_error: bool,
}

impl Step<'_> {
    pub(super) fn thread_sent(&mut self, tool_use_id: &str, message: ThreadMessage) {
        if self.knows_thread(tool_use_id, &message, None) {
            self.emit(Payload::ThreadMessageSent(message));
        }
    }

    pub(super) fn thread_received(&mut self, tool_use_id: &str, message: ThreadMessage) {
        if self.knows_thread(tool_use_id, &message, Some(false)) {
            self.emit(Payload::ThreadMessageReceived(message));
        }
    }

    /// The model call that the text is for is under way or about to be, unless the turn was stopped in the meantime.
    pub(super) fn result_transformed(&mut self, tool_use_id: String, text: String) {
        if self
            .state
            .turn
            .as_ref()
            .is_some_and(|turn| matches!(turn.phase, Phase::CallingModel | Phase::Compacting))
        {
            self.emit(Payload::ToolResultTransformed(ToolResultTransformed { tool_use_id, text }));
        }
    }

    pub(super) fn tool_finished(&mut self, id: &str, content: Vec<Block>, is_error: bool) {
        let Some(turn) = &self.state.turn else { return };
        // A tool that was stopped or already answered for may still report; its call is closed.
        let Some(call) = turn.calls().iter().find(|call| call.id == id && call.progress == Progress::Started)
        else {
            return;
        };
        let (tool, kind) = (call.tool.clone(), call.kind);
        self.emit_result(FinishedCall { id, tool: &tool, kind, content, is_error });
    }

    pub(super) fn emit_result(&mut self, call: FinishedCall<'_>) {
        // An id in the log was made by us, so it reads back; if not, there is no call to end.
        let Ok(tool_use_id) = call.id.parse::<ToolUseId>() else { return };
        let result = ToolResult {
            tool_use_id,
            tool: call.tool.to_owned(),
            content: call.content,
            is_error: call.is_error,
        };
        self.emit(match call.kind {
            CallKind::Mcp => Payload::McpToolResult(result),
            _ => Payload::ToolResult(result),
        });
    }

    /// Whether a call is under way, and knows as much of one of its threads: nothing, or whether it is done.
    fn knows_thread(&self, tool_use_id: &str, message: &ThreadMessage, known: Option<bool>) -> bool {
        let calls = self.state.turn.iter().flat_map(Turn::calls);
        let mut started = calls.filter(|call| call.progress == Progress::Started);
        let call = started.find(|call| call.id == tool_use_id);
        call.is_some_and(|call| call.threads.get(message.thread_id.as_str()).copied() == known)
    }
}
