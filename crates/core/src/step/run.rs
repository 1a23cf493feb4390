//! Turns that are runs of routines: they end by `emit_output`, by a failure or from outside, and are settled once.

use crate::event::{
    Block, Payload, PromptPrepared, RunOpened, RunReminded, RunSettled, StopReason, ToolResult, UserMessage,
};
use crate::ids::{RunId, ToolUseId};
use crate::routine::OnToolError;
use crate::run::{EMIT_OUTPUT, REMINDER, RunError, RunErrorCode, RunOutcome};
use crate::state::{CallKind, FailedTool, Progress, State, Turn, TurnRun};

use super::next::end;
use super::tool::FinishedCall;
use super::user::refuse_while_busy;
use super::{Emitted, Opening, Refusal, Step};

/// The stop of a run that made as many model calls as it may.
const TOO_MANY_CALLS: &str = "max_engine_iterations_reached";
/// How many characters of a tool's result an error repeats.
const MAX_QUOTED: usize = 500;

impl Step<'_> {
    pub(super) fn start_run(
        &mut self,
        opened: RunOpened,
        message: UserMessage,
        mut opening: Opening,
    ) -> Result<(), Refusal> {
        if self.state.view.archived_at.is_some() {
            return Err(Refusal::Archived);
        }
        refuse_while_busy(&self.state)?;
        self.open(Payload::UserMessage(message), &mut opening);
        self.emit(Payload::RunOpened(opened));
        if let Some(text) = opening.prompt {
            self.emit(Payload::PromptPrepared(PromptPrepared { text }));
        }
        Ok(())
    }

    /// Ends the run from outside. What the model says later is dropped.
    pub(super) fn end_run(&mut self, run_id: &RunId, error: RunError) {
        let run = self.state.turn.as_ref().and_then(unsettled);
        if run.is_some_and(|run| run.run_id == *run_id) {
            self.settle(RunOutcome::Failed { error });
        }
    }

    /// Fails the run of a turn that is being stopped.
    pub(super) fn fail_run(&mut self, stop_reason: &StopReason) {
        if let Some(payload) = self.state.turn.as_ref().and_then(|turn| failed_by(turn, stop_reason)) {
            self.emit(payload);
        }
    }

    /// Takes the output of the run. The first that can be read settles it.
    pub(super) fn output(&mut self, id: &ToolUseId, emitted: Emitted) {
        if self.state.turn.as_ref().and_then(unsettled).is_none() {
            return;
        }
        let (text, outcome) = match emitted {
            Emitted::Fits(output) => (r#"{"ok":true}"#.to_owned(), Some(RunOutcome::Succeeded { output })),
            Emitted::Breaks(error) => (not_ok(&error.message), Some(RunOutcome::Failed { error })),
            Emitted::Unreadable(problem) => (not_ok(&problem), None),
        };
        let is_error = !matches!(outcome, Some(RunOutcome::Succeeded { .. }));
        let content = vec![Block::text(text)];
        self.emit_result(FinishedCall {
            id: id.as_str(),
            tool: EMIT_OUTPUT,
            kind: CallKind::Builtin,
            content,
            is_error,
        });
        if let Some(outcome) = outcome {
            self.settle(outcome);
        }
    }

    fn settle(&mut self, outcome: RunOutcome) {
        let run = self.state.turn.as_ref().and_then(unsettled);
        if let Some(run_id) = run.map(|run| run.run_id.clone()) {
            self.emit(Payload::RunSettled(RunSettled { run_id, outcome }));
        }
    }
}

fn not_ok(problem: &str) -> String {
    serde_json::json!({ "ok": false, "error": problem }).to_string()
}

fn unsettled(turn: &Turn) -> Option<&TurnRun> {
    turn.run.as_deref().filter(|run| run.settled.is_none())
}

/// What a run does by itself before anything else: it fails with a tool, and ends its turn when it is settled.
pub(super) fn next(state: &State, turn: &Turn) -> Option<Payload> {
    let run = turn.run.as_ref()?;
    if let Some(stop_reason) = &run.settled {
        return Some(close_call(turn).unwrap_or_else(|| end(state, turn, stop_reason.clone())));
    }
    let failed = run.failed_tool.as_ref().filter(|_| run.job.on_tool_error == OnToolError::Fail)?;
    Some(settled(run, tool_error(failed)))
}

/// The result of a call that is still open when the run is over.
fn close_call(turn: &Turn) -> Option<Payload> {
    let call = turn.calls().iter().find(|call| call.progress != Progress::Done)?;
    let text = match call.progress {
        Progress::Started => "The run is over. This call was stopped; it may have had an effect.",
        _ => "The run is over. This call was not executed.",
    };
    let tool_use_id = call.id.parse().ok()?;
    let (tool, content) = (call.tool.clone(), vec![Block::text(text)]);
    let result = ToolResult { tool_use_id, tool, content, is_error: true };
    Some(if call.kind == CallKind::Mcp {
        Payload::McpToolResult(result)
    } else {
        Payload::ToolResult(result)
    })
}

/// Tells a model that answered without a call how a run ends, unless it may not be called again.
pub(super) fn remind(state: &State, turn: &Turn) -> Payload {
    match too_many_calls(turn) {
        Some(stop_reason) => end(state, turn, stop_reason),
        None => Payload::RunReminded(RunReminded { text: REMINDER.to_owned() }),
    }
}

/// The stop of a run that made as many model calls as it may.
pub(super) fn too_many_calls(turn: &Turn) -> Option<StopReason> {
    let most = turn.run.as_ref()?.job.max_model_calls;
    let message =
        format!("The run made {most} model calls, the most it may, and none of them emitted its output.");
    (turn.model_calls >= most).then(|| StopReason::Error { code: TOO_MANY_CALLS.to_owned(), message })
}

/// The failure of a run whose turn ends for this reason; none if there is no run, or it is settled.
pub(super) fn failed_by(turn: &Turn, stop_reason: &StopReason) -> Option<Payload> {
    let run = unsettled(turn)?;
    let error = match stop_reason {
        StopReason::Error { code, message } if code == TOO_MANY_CALLS => {
            let error = RunError::new(RunErrorCode::MaxEngineIterationsReached, message.clone());
            error.with("max_engine_iterations", run.job.max_model_calls)
        }
        other => RunError::of_stop(other),
    };
    Some(settled(run, error))
}

fn settled(run: &TurnRun, error: RunError) -> Payload {
    let outcome = RunOutcome::Failed { error };
    Payload::RunSettled(RunSettled { run_id: run.run_id.clone(), outcome })
}

fn tool_error(failed: &FailedTool) -> RunError {
    let FailedTool { tool_id, text } = failed;
    let text: String = text.chars().take(MAX_QUOTED).collect();
    let message = format!("{tool_id} failed: {text}");
    RunError::new(RunErrorCode::ToolError, message).with("tool_id", tool_id.as_str())
}
