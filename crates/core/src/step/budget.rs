//! What a turn may still use, and how a person is asked when that is nothing.

use serde_json::Map;

use crate::budget::{Budget, CONTINUE};
use crate::event::{Failure, Payload, ToolEffect, ToolUse};
use crate::ids::ToolUseId;
use crate::limits::Limits;
use crate::spending::amount;
use crate::state::{State, Turn};

/// The budget that is used up, if one is, and what to say about it.
pub(super) fn used_up(state: &State, turn: &Turn, limits: &Limits) -> Option<(Budget, Failure)> {
    let over = |budget: Budget, used: u64, most: Option<u64>, say: &dyn Fn(u64) -> String| {
        let allowances = if budget.is_of_session() { &state.allowances } else { &turn.allowances };
        let most = budget.raised(most?, allowances);
        (used >= most).then(|| (budget, Failure { code: budget.code().to_owned(), message: say(most) }))
    };
    let (calls, tokens, cost) = (turn.model_calls, turn.tokens, turn.cost_nanos);
    let of_session = state.view.usage;
    let session_cost = of_session.cost_nanos.unwrap_or(0);
    // A run has a bound of its own.
    let most_calls = turn.run.is_none().then_some(limits.turn_model_calls.into());
    over(Budget::TurnModelCalls, calls.into(), most_calls, &|_| {
        format!(
            "The turn made {calls} model calls, the most it may; send a message to go on, or raise \
             limits.turn_model_calls."
        )
    })
    .or_else(|| {
        over(Budget::TurnTokens, tokens, Some(limits.turn_tokens), &|most| {
            format!("The turn used {tokens} tokens of {most}; send a message to go on, or raise limits.turn_tokens.")
        })
    })
    .or_else(|| {
        over(Budget::TurnCost, cost, limits.turn_cost_nanos, &|most| {
            let (cost, most) = (amount(cost), amount(most));
            format!("The turn cost {cost} of {most}; send a message to go on, or raise limits.turn_cost.")
        })
    })
    .or_else(|| {
        over(Budget::SessionCost, session_cost, limits.session_cost_nanos, &|most| {
            let (cost, most) = (amount(session_cost), amount(most));
            format!(
                "The session cost {cost} of its budget of {most}; start a new session, or raise limits.session_cost."
            )
        })
    })
    .or_else(|| {
        let used = of_session.total();
        over(Budget::SessionTokens, used, limits.session_tokens, &|most| {
            format!(
                "The session used {used} tokens of its budget of {most}; start a new session, or raise \
                 limits.session_tokens."
            )
        })
    })
}

/// Asks a person whether to go on: by a call that no model has made, so that whoever can answer for a tool can answer
/// this.
pub(super) fn ask(state: &State, budget: Budget, over: Failure) -> Payload {
    let fields = [("budget", budget.code().into()), ("message", over.message.as_str().into())];
    let input: Map<_, _> = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Payload::ToolUse(ToolUse {
        id: ToolUseId::for_budget(&state.session_id, state.view.last_sequence + 1),
        tool: CONTINUE.to_owned(),
        input,
        effect: ToolEffect::ReadOnly,
        preview: Some(over.message),
        requires_action: true,
        danger: None,
        patterns: Vec::new(),
        budget: Some(budget),
        mcp: None,
    })
}
