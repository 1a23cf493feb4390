//! What a turn does by itself, one event at a time.
//!
//! The answer depends on the state alone, so it is the same before and after a crash.

use crate::event::{
    Block, CompactionStarted, ModelStarted, Payload, StatusIdle, StopReason, TitleSource, Titled, ToolResult,
    ToolStarted,
};
use crate::ids::ToolUseId;
use crate::limits::Limits;
use crate::spending::amount;
use crate::state::{Announced, Call, CallKind, Phase, Progress, State, Turn};

/// The next event that the turn appends without any input, or none if it has to wait.
pub(super) fn next(state: &State, limits: &Limits) -> Option<Payload> {
    let turn = state.turn.as_ref()?;
    let pending = turn.pending_ids();
    match &turn.announced {
        Announced::Paused(announced) if *announced == pending => return None,
        Announced::Paused(_) if !pending.is_empty() => return Some(paused(pending)),
        Announced::Paused(_) | Announced::Nothing => return Some(Payload::StatusRunning {}),
        Announced::Running => {}
    }
    match &turn.phase {
        Phase::Opening => Some(call_model(state, turn, limits)),
        Phase::Compacting | Phase::CallingModel => None,
        // It is made shorter once, and the call is tried again.
        Phase::Acting { error: Some(failure), .. }
            if failure.is_context_too_long() && turn.overflows == 1 =>
        {
            Some(compact(state))
        }
        Phase::Acting { error: Some(failure), .. } => Some(end(
            state,
            turn,
            StopReason::Error { code: failure.code.clone(), message: failure.message.clone() },
        )),
        Phase::Acting { calls, cut_short, error: None } => {
            let all_answered = pending.is_empty();
            if let Some(payload) = calls.iter().find_map(|call| proceed(call, all_answered)) {
                Some(payload)
            } else if calls.iter().any(|call| call.progress == Progress::Started) {
                None
            } else if !all_answered {
                Some(paused(pending))
            } else if cut_short.is_some() || (calls.is_empty() && state.steers.is_empty()) {
                Some(end(state, turn, StopReason::EndTurn { reason: *cut_short, interrupted: false }))
            } else {
                Some(call_model(state, turn, limits))
            }
        }
    }
}

fn paused(event_ids: Vec<String>) -> Payload {
    let stop_reason = StopReason::RequiresAction { event_ids };
    Payload::StatusIdle(StatusIdle { stop_reason, takes_up: Vec::new() })
}

/// Starts a call that may start, or closes one that may not run.
fn proceed(call: &Call, all_answered: bool) -> Option<Payload> {
    let tool_use_id: ToolUseId = call.id.parse().ok()?;
    match &call.progress {
        // What a person was asked about starts together, when everything has been answered.
        Progress::Ready if all_answered || !call.asked => {
            Some(Payload::ToolStarted(ToolStarted { tool_use_id }))
        }
        Progress::Denied { reason } if all_answered => {
            let text = match reason {
                Some(reason) => format!("Tool call denied: {reason}"),
                None => "Tool call denied".to_owned(),
            };
            let (tool, content) = (call.tool.clone(), vec![Block::text(text)]);
            let result = ToolResult { tool_use_id, tool, content, is_error: true };
            Some(match call.kind {
                CallKind::Mcp => Payload::McpToolResult(result),
                _ => Payload::ToolResult(result),
            })
        }
        _ => None,
    }
}

fn call_model(state: &State, turn: &Turn, limits: &Limits) -> Payload {
    if let Some(stop_reason) = limit_reached(state, turn, limits) {
        return end(state, turn, stop_reason);
    }
    let too_long = limits.context_tokens.is_some_and(|most| state.context.is_over(most));
    if too_long && turn.compacted_at != Some(turn.model_calls) {
        return compact(state);
    }
    let takes_up = turn.waiting.iter().chain(&state.steers).copied().collect();
    Payload::ModelStarted(ModelStarted { call: turn.model_calls + 1, takes_up })
}

fn compact(state: &State) -> Payload {
    Payload::CompactionStarted(CompactionStarted { tokens: state.context.tokens() })
}

fn limit_reached(state: &State, turn: &Turn, limits: &Limits) -> Option<StopReason> {
    let error = |code: &str, message: String| Some(StopReason::Error { code: code.to_owned(), message });
    if turn.model_calls >= limits.turn_model_calls {
        let message = format!(
            "The turn made {} model calls, the most it may; send a message to go on, or raise limits.turn_model_calls.",
            turn.model_calls
        );
        return error("turn_model_calls_exceeded", message);
    }
    if turn.tokens >= limits.turn_tokens {
        let message = format!(
            "The turn used {} tokens of {}; send a message to go on, or raise limits.turn_tokens.",
            turn.tokens, limits.turn_tokens
        );
        return error("turn_tokens_exceeded", message);
    }
    if let Some(most) = limits.turn_cost_nanos.filter(|most| turn.cost_nanos >= *most) {
        let message = format!(
            "The turn cost {} of {}; send a message to go on, or raise limits.turn_cost.",
            amount(turn.cost_nanos),
            amount(most)
        );
        return error("turn_cost_exceeded", message);
    }
    let cost = state.view.usage.cost_nanos.unwrap_or(0);
    if let Some(most) = limits.session_cost_nanos.filter(|most| cost >= *most) {
        let message = format!(
            "The session cost {} of its budget of {}; start a new session, or raise limits.session_cost.",
            amount(cost),
            amount(most)
        );
        return error("session_cost_exceeded", message);
    }
    let budget = limits.session_tokens.filter(|budget| state.view.usage.total() >= *budget)?;
    let used = state.view.usage.total();
    let message = format!(
        "The session used {used} tokens of its budget of {budget}; start a new session, or raise limits.session_tokens."
    );
    error("session_budget_exceeded", message)
}

/// Ends the turn, after giving the session a title if nobody else did.
pub(super) fn end(state: &State, turn: &Turn, stop_reason: StopReason) -> Payload {
    if let (None, Some(title)) = (state.title_source, &state.suggested_title) {
        return Payload::Titled(Titled { title: Some(title.clone()), source: TitleSource::Generated });
    }
    Payload::StatusIdle(StatusIdle { stop_reason, takes_up: turn.waiting.clone() })
}
