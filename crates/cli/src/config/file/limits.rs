//! Bounds of turns, tools and requests.

use std::num::NonZero;

use serde::Deserialize;

use super::amounts::{Price, Seconds};

/// Bounds of turns, tools and requests.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Model calls in one turn.
    pub(crate) turn_model_calls: Option<NonZero<u32>>,
    /// Time that one turn may run between two pauses.
    pub(crate) turn_seconds: Option<Seconds>,
    /// Tokens in one turn.
    pub(crate) turn_tokens: Option<NonZero<u64>>,
    /// Tokens in one session.
    pub(crate) session_tokens: Option<NonZero<u64>>,
    /// What one turn may cost.
    pub(crate) turn_cost: Option<Price>,
    /// What one session may cost.
    pub(crate) session_cost: Option<Price>,
    /// What an agent may cost on one day, all of its sessions together.
    pub(crate) agent_day_cost: Option<Price>,
    /// What an agent may cost in one month, all of its sessions together.
    pub(crate) agent_month_cost: Option<Price>,
    /// What happens when one of these is used up.
    pub(crate) at_budget: AtBudget,
    /// How long a paused turn waits for somebody; for ever unless set.
    pub(crate) action_seconds: Option<Seconds>,
    /// Tool calls that one model answer may make.
    pub(crate) step_tool_calls: Option<NonZero<usize>>,
    /// Subagents that one call may start.
    pub(crate) call_threads: Option<NonZero<usize>>,
    /// Model calls that a subagent may make.
    pub(crate) thread_model_calls: Option<NonZero<u32>>,
    /// Bytes of a request's body.
    pub(crate) body_bytes: Option<NonZero<usize>>,
    /// Characters of a tool's result.
    pub(crate) tool_output_chars: Option<NonZero<usize>>,
    /// Time that one tool call may take.
    pub(crate) tool_seconds: Option<Seconds>,
}

/// What happens when a budget is used up.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum AtBudget {
    /// The turn ends with an error.
    #[default]
    Stop,
    /// The turn waits until somebody lets it go on, or ends it.
    Pause,
}
