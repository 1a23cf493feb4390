//! What a turn does by itself, one event at a time.
//!
//! The answer depends on the state alone, so it is the same before and after a crash.

use std::time::Duration;

use jiff::SignedDuration;

use super::{budget, run};
use crate::budget::{AtBudget, Budget};
use crate::event::{
    Block, CompactionStarted, CutShort, Failure, ModelStarted, Payload, StatusIdle, StopReason, TitleSource,
    Titled, ToolResult, ToolStarted,
};
use crate::failed_calls::FailedCalls;
use crate::ids::ToolUseId;
use crate::limits::Limits;
use crate::state::{Announced, Call, CallKind, Phase, Progress, State, Turn};

/// Whoever waits this long waits for ever. It is less than stores can count.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How many answers in a row may end at their limit in the middle of a call.
const MAX_CUT_CALLS: u32 = 3;

/// The next event that the turn appends without any input, or none if it has to wait.
pub(super) fn next(state: &State, limits: &Limits) -> Option<Payload> {
    let turn = state.turn.as_ref()?;
    if let Some(payload) = run::next(state, turn) {
        return Some(payload);
    }
    let pending = turn.pending_ids();
    match &turn.announced {
        Announced::Paused(announced) if *announced == pending => return None,
        Announced::Paused(_) if !pending.is_empty() => return Some(paused(state, turn, limits, pending)),
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
        Phase::Acting { error: Some(failure), .. } => {
            // The budget of the agent, which is counted where all its sessions are known.
            let budget = Budget::of_code(&failure.code).filter(|_| turn.over_budget.is_none());
            Some(match (budget, at_budget(turn, limits)) {
                (Some(budget), AtBudget::Pause) => budget::ask(state, budget, failure.clone()),
                _ => end(state, turn, failed(failure)),
            })
        }
        Phase::Acting { calls, cut_short, error: None } => {
            let all_answered = pending.is_empty();
            if let Some(payload) = calls.iter().find_map(|call| proceed(call, all_answered)) {
                Some(payload)
            } else if calls.iter().any(|call| call.progress == Progress::Started) {
                None
            } else if !all_answered {
                Some(paused(state, turn, limits, pending))
            } else if let Some(tool) = turn.failed_calls.looping() {
                let (code, message) = (Failure::TOOL_LOOP.to_owned(), FailedCalls::explain(tool));
                Some(end(state, turn, StopReason::Error { code, message }))
            } else if turn.cut_calls >= MAX_CUT_CALLS {
                Some(end(
                    state,
                    turn,
                    StopReason::EndTurn { reason: Some(CutShort::MaxTokens), interrupted: false },
                ))
            } else if turn.run.is_some() && (cut_short.is_some() || calls.is_empty()) {
                Some(run::remind(state, turn))
            } else if state.steers.is_empty() && (cut_short.is_some() || calls.is_empty()) {
                Some(end(state, turn, StopReason::EndTurn { reason: *cut_short, interrupted: false }))
            } else {
                Some(call_model(state, turn, limits))
            }
        }
    }
}

/// Waits for somebody. The time for all answers begins when the first of them is waited for; it is measured from the
/// last event, so that it depends on the log alone.
fn paused(state: &State, turn: &Turn, limits: &Limits, event_ids: Vec<String>) -> Payload {
    let end = |time| state.view.updated_at.checked_add(SignedDuration::try_from(time).ok()?).ok();
    let time = limits.action_time.filter(|time| *time < FOR_EVER);
    let expires_at = turn.expires_at.or_else(|| time.and_then(end));
    let stop_reason = StopReason::RequiresAction { event_ids, expires_at };
    Payload::StatusIdle(StatusIdle { stop_reason, takes_up: Vec::new() })
}

fn failed(failure: &Failure) -> StopReason {
    StopReason::Error { code: failure.code.clone(), message: failure.message.clone() }
}

/// Starts a call that may start, or closes one that may not run.
fn proceed(call: &Call, all_answered: bool) -> Option<Payload> {
    let tool_use_id: ToolUseId = call.id.parse().ok()?;
    match &call.progress {
        // Leave to go on is all that it was about.
        Progress::Ready if all_answered && call.budget.is_some() => {
            let content = vec![Block::text("The turn may go on, until as much again is used.")];
            let result = ToolResult { tool_use_id, tool: call.tool.clone(), content, is_error: false };
            Some(Payload::ToolResult(result))
        }
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
    // Somebody was asked and did not let it go on.
    if let Some(over) = &turn.over_budget {
        return end(state, turn, failed(over));
    }
    if let Some(stop_reason) = run::too_many_calls(turn) {
        return end(state, turn, stop_reason);
    }
    if let Some((budget, over)) = budget::used_up(state, turn, limits) {
        return match at_budget(turn, limits) {
            AtBudget::Pause => budget::ask(state, budget, over),
            AtBudget::Stop => end(state, turn, failed(&over)),
        };
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

/// What happens when a budget is used up. Nobody attends a run, so nobody is asked.
fn at_budget(turn: &Turn, limits: &Limits) -> AtBudget {
    if turn.run.is_some() { AtBudget::Stop } else { limits.at_budget }
}

/// Ends the turn, after settling its run and giving the session a title if nobody else did.
pub(super) fn end(state: &State, turn: &Turn, stop_reason: StopReason) -> Payload {
    if let Some(settled) = run::failed_by(turn, &stop_reason) {
        return settled;
    }
    if let (None, Some(title)) = (state.title_source, &state.suggested_title) {
        return Payload::Titled(Titled { title: Some(title.clone()), source: TitleSource::Generated });
    }
    Payload::StatusIdle(StatusIdle { stop_reason, takes_up: turn.waiting.clone() })
}
