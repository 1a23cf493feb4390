//! What a server picks up again by itself when it starts, in the words that logs and stores keep.

use serde::{Deserialize, Serialize};

/// Types of events that show that a session got on with its turn. Events that come from outside are not among them: a
/// client that keeps steering a turn does not move it.
pub const PROGRESS_TYPES: &[&str] = &[
    "session.status_running",
    "session.status_idle",
    "session.compaction_started",
    "session.compacted",
    "span.model_started",
    "span.model_finished",
    "tool.started",
    "agent.tool_result",
    "agent.mcp_tool_result",
    "agent.thread_message_sent",
    "agent.thread_message_received",
    "run.settled",
];

/// A kind of work that a server picks up again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WorkKind {
    /// The tool calls that a turn has under way.
    ToolCall,
    /// A model call of a turn, or the compaction before it.
    ModelCall,
    /// Waking a session, whatever for.
    Wake,
    /// A session that has waited for somebody for as long as it may.
    Expiry,
    /// An accepted run of a routine that waits for its session.
    Run,
    /// A due time of a routine's schedule.
    Schedule,
    /// A webhook or a callback.
    Delivery,
    /// The removal of a session or of its files.
    Removal,
    /// The feeding of the full-text index.
    Index,
}

impl WorkKind {
    /// All kinds.
    pub const ALL: [WorkKind; 9] = [
        WorkKind::ToolCall,
        WorkKind::ModelCall,
        WorkKind::Wake,
        WorkKind::Expiry,
        WorkKind::Run,
        WorkKind::Schedule,
        WorkKind::Delivery,
        WorkKind::Removal,
        WorkKind::Index,
    ];

    /// The kind as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            WorkKind::ToolCall => "tool_call",
            WorkKind::ModelCall => "model_call",
            WorkKind::Wake => "wake",
            WorkKind::Expiry => "expiry",
            WorkKind::Run => "run",
            WorkKind::Schedule => "schedule",
            WorkKind::Delivery => "delivery",
            WorkKind::Removal => "removal",
            WorkKind::Index => "index",
        }
    }

    /// Whether it is a turn of a session, or what the turn has under way.
    pub fn is_turn(self) -> bool {
        matches!(self, WorkKind::ToolCall | WorkKind::ModelCall | WorkKind::Wake)
    }

    /// The kind of work that a running session has under way, by the type of its newest event that shows progress.
    pub fn of_turn(newest: Option<&str>) -> Self {
        match newest {
            Some(
                "tool.started"
                | "agent.tool_result"
                | "agent.mcp_tool_result"
                | "agent.thread_message_sent"
                | "agent.thread_message_received",
            ) => WorkKind::ToolCall,
            Some("span.model_started" | "session.compaction_started") => WorkKind::ModelCall,
            _ => WorkKind::Wake,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_is_written() {
        for kind in WorkKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_turn_that_waits_for_tools_is_told_from_one_that_waits_for_a_model() {
        assert_eq!(WorkKind::of_turn(Some("tool.started")), WorkKind::ToolCall);
        assert_eq!(WorkKind::of_turn(Some("span.model_started")), WorkKind::ModelCall);
        assert_eq!(WorkKind::of_turn(Some("session.status_running")), WorkKind::Wake);
        assert_eq!(WorkKind::of_turn(None), WorkKind::Wake);
    }
}
