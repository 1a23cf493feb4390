//! Bounds on what one turn and one session may use.

use std::time::Duration;

use crate::budget::AtBudget;

/// When a turn is stopped, whatever the model wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Model calls in one turn.
    pub turn_model_calls: u32,
    /// Time that one turn may run between two pauses.
    pub turn_time: Duration,
    /// Tokens, read and written, in one turn.
    pub turn_tokens: u64,
    /// Tokens, read and written, in the whole session; none for no bound.
    pub session_tokens: Option<u64>,
    /// What one turn may cost, in billionths; none for no bound.
    pub turn_cost_nanos: Option<u64>,
    /// What the whole session may cost, in billionths; none for no bound.
    pub session_cost_nanos: Option<u64>,
    /// What an agent may cost on one day, all of its sessions together; none for no bound.
    pub agent_day_cost_nanos: Option<u64>,
    /// What an agent may cost in one month, all of its sessions together; none for no bound.
    pub agent_month_cost_nanos: Option<u64>,
    /// Tokens at which a context is compacted; none for never, unless the provider refuses it.
    pub context_tokens: Option<u64>,
    /// What happens when one of these is used up.
    pub at_budget: AtBudget,
    /// How long a paused turn waits for somebody; none for ever.
    pub action_time: Option<Duration>,
    /// Tool calls that one model answer may make.
    pub step_tool_calls: usize,
    /// Subagents that one call may start.
    pub call_threads: usize,
    /// Model calls that a subagent may make.
    pub thread_model_calls: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            turn_model_calls: 100,
            turn_time: Duration::from_secs(3600),
            turn_tokens: 20_000_000,
            session_tokens: None,
            turn_cost_nanos: None,
            session_cost_nanos: None,
            agent_day_cost_nanos: None,
            agent_month_cost_nanos: None,
            context_tokens: None,
            at_budget: AtBudget::Stop,
            action_time: None,
            step_tool_calls: 64,
            call_threads: 4,
            thread_model_calls: 50,
        }
    }
}
