//! Turns that end before the model is done: interrupts, deadlines, archiving, and what a crash leaves behind.

use crate::event::{
    ActionExpired, AgentMessage, Block, ModelFinished, Payload, StatusIdle, StopReason, SudoRequest,
    ToolEffect,
};
use crate::state::{Call, CallKind, Phase, Progress, SudoNeed};

use super::tool::FinishedCall;
use super::{ReadOnlyCalls, Step};

/// The code of a turn that was given up because the server died over and over while it was under way.
pub const CRASH_LOOP: &str = "crash_loop";

impl Step<'_> {
    /// Ends the turn under way, if there is one, as the user's wish.
    pub(super) fn interrupt_turn(&mut self, why: &str, said_so_far: String) {
        let Some(turn) = &self.state.turn else { return };
        if turn.phase == Phase::CallingModel && !said_so_far.is_empty() {
            let call = turn.model_calls;
            // What the reader has seen stays said.
            self.emit(Payload::ModelFinished(ModelFinished { call, ..ModelFinished::default() }));
            self.emit(Payload::AgentMessage(AgentMessage { text: said_so_far }));
        }
        self.stop_turn(why, StopReason::EndTurn { reason: None, interrupted: true });
    }

    pub(super) fn deadline_passed(&mut self) {
        let Some(turn) = &self.state.turn else { return };
        if turn.is_paused() {
            return;
        }
        let seconds = self.limits.turn_time.as_secs();
        let message = format!(
            "The turn ran for {seconds} s, the longest it may; send a message to go on, or raise limits.turn_seconds."
        );
        let stop_reason = StopReason::Error { code: "turn_time_exceeded".to_owned(), message };
        self.stop_turn("The turn ran out of time.", stop_reason);
    }

    /// Ends a turn that the server died of, unless it waits for somebody.
    pub(super) fn give_up(&mut self, message: String) {
        if self.state.turn.as_ref().is_some_and(|turn| !turn.is_paused()) {
            let stop_reason = StopReason::Error { code: CRASH_LOOP.to_owned(), message };
            self.stop_turn("The server died over and over during this turn.", stop_reason);
        }
    }

    /// Puts the session away.
    pub(super) fn archive(&mut self) {
        self.interrupt_turn("The session was archived.", String::new());
        if self.state.view.archived_at.is_none() {
            self.emit(Payload::Archived {});
        }
    }

    /// Goes on without the answers that a paused turn waits for, if their time is over.
    pub(super) fn actions_expired(&mut self) {
        let Some(turn) = self.state.turn.as_ref().filter(|turn| turn.is_paused()) else { return };
        if turn.expires_at.is_none_or(|at| at > self.now) {
            return;
        }
        let pending =
            turn.pending().map(|action| ActionExpired { id: action.id.to_owned(), action: action.kind });
        for expired in pending.collect::<Vec<_>>() {
            self.emit(Payload::ActionExpired(expired));
        }
    }

    fn stop_turn(&mut self, why: &str, stop_reason: StopReason) {
        self.fail_run(&stop_reason);
        let Some(turn) = &self.state.turn else { return };
        let open: Vec<Call> = turn
            .calls()
            .iter()
            .filter(|call| call.progress != Progress::Done)
            // Answers from outside have no result event of ours; they just are no longer pending.
            .filter(|call| matches!(call.kind, CallKind::Builtin | CallKind::Mcp))
            .cloned()
            .collect();
        for call in open {
            let text = match call.progress {
                Progress::Started => format!("{why} This call was stopped; it may have had an effect."),
                _ => format!("{why} This call was not executed."),
            };
            self.close(&call, text);
        }
        // The turn is still there, with what it has not taken up.
        let takes_up = self.state.turn.as_ref().map(|turn| turn.waiting.clone()).unwrap_or_default();
        self.emit(Payload::StatusIdle(StatusIdle { stop_reason, takes_up }));
    }

    /// Settles what the process that is gone had under way and cannot be asked again.
    pub(super) fn recover(&mut self, passwords: &[String], read_only_calls: ReadOnlyCalls) {
        let Some(turn) = &self.state.turn else { return };
        for call in turn.calls().to_vec() {
            match call.progress {
                Progress::Started if call.effect == ToolEffect::SideEffect => {
                    let text = "The server stopped while this call was running, and its outcome is unknown. \
                                Check before you do it again.";
                    self.close(&call, text.to_owned());
                }
                Progress::Started if read_only_calls == ReadOnlyCalls::SetAside => {
                    let text = "The server stopped several times in a row while this call was running. The call is not \
                                made again, and its outcome is unknown. Do not make the same call once more.";
                    self.close(&call, text.to_owned());
                }
                // Passwords are never stored, so the one that came is gone, and is asked for again.
                Progress::Waiting | Progress::Ready => {
                    let lost = |sudo: &&SudoNeed| sudo.answered && !passwords.contains(&sudo.request_id);
                    if let Some(sudo) = call.sudo.as_ref().filter(lost)
                        && let (Ok(request_id), Ok(tool_use_id)) = (sudo.request_id.parse(), call.id.parse())
                    {
                        let command = sudo.command.clone();
                        self.emit(Payload::SudoRequest(SudoRequest { request_id, tool_use_id, command }));
                    }
                }
                _ => {}
            }
        }
    }

    fn close(&mut self, call: &Call, text: String) {
        let content = vec![Block::text(text)];
        self.emit_result(FinishedCall {
            id: &call.id,
            tool: &call.tool,
            kind: call.kind,
            content,
            is_error: true,
        });
    }
}
