//! Budgets: what turns, sessions and agents may use, and what happens when it is used up.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The tool by whose name a person is asked whether to go on. No model calls it.
pub const CONTINUE: &str = "continue_over_budget";

/// Something that can be used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Budget {
    /// Model calls of a turn.
    TurnModelCalls,
    /// Tokens of a turn.
    TurnTokens,
    /// The cost of a turn.
    TurnCost,
    /// Tokens of a session.
    SessionTokens,
    /// The cost of a session.
    SessionCost,
    /// The cost of an agent on one day.
    AgentDay,
    /// The cost of an agent in one month.
    AgentMonth,
}

/// How often somebody let a turn go on over each budget. Each time it may use as much again.
pub type Allowances = BTreeMap<Budget, u32>;

/// What happens when a budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AtBudget {
    /// The turn ends with an error.
    #[default]
    Stop,
    /// The turn waits until somebody lets it go on, or ends it.
    Pause,
}

impl Budget {
    const ALL: [Budget; 7] = [
        Budget::TurnModelCalls,
        Budget::TurnTokens,
        Budget::TurnCost,
        Budget::SessionTokens,
        Budget::SessionCost,
        Budget::AgentDay,
        Budget::AgentMonth,
    ];

    /// The code of the error that ends a turn when it is used up.
    pub fn code(self) -> &'static str {
        match self {
            Budget::TurnModelCalls => "turn_model_calls_exceeded",
            Budget::TurnTokens => "turn_tokens_exceeded",
            Budget::TurnCost => "turn_cost_exceeded",
            Budget::SessionTokens => "session_budget_exceeded",
            Budget::SessionCost => "session_cost_exceeded",
            Budget::AgentDay => "agent_day_budget_exceeded",
            Budget::AgentMonth => "agent_month_budget_exceeded",
        }
    }

    /// The budget whose error has this code.
    pub fn of_code(code: &str) -> Option<Self> {
        Budget::ALL.into_iter().find(|budget| budget.code() == code)
    }

    /// Whether it is spent over all turns of a session, so that leave to go on outlasts the turn.
    pub fn is_of_session(self) -> bool {
        matches!(self, Budget::SessionTokens | Budget::SessionCost)
    }

    /// What may be used, if `most` is the budget and somebody let it go on so often.
    pub fn raised(self, most: u64, allowances: &Allowances) -> u64 {
        let times = u64::from(allowances.get(&self).copied().unwrap_or(0));
        most.saturating_mul(times.saturating_add(1))
    }
}
