//! What people and applications send.

use crate::event::{Payload, PromptPrepared, Verdict};
use crate::state::{ActionKind, State};

use super::{Refusal, Step, UserEvent};

impl Step<'_> {
    pub(super) fn user(
        &mut self,
        events: Vec<UserEvent>,
        said_so_far: &str,
        prompt: Option<String>,
    ) -> Result<(), Refusal> {
        if self.state.view.archived_at.is_some() {
            return Err(Refusal::Archived);
        }
        for event in events {
            self.user_event(event, said_so_far)?;
        }
        if let Some(text) = prompt {
            self.emit(Payload::PromptPrepared(PromptPrepared { text }));
        }
        Ok(())
    }

    fn user_event(&mut self, event: UserEvent, said_so_far: &str) -> Result<(), Refusal> {
        match event {
            UserEvent::Message(message) => {
                refuse_while_busy(&self.state)?;
                self.emit(Payload::UserMessage(message));
            }
            UserEvent::Steer(steer) => self.emit(Payload::UserSteer(steer)),
            UserEvent::Interrupt(interrupt) => {
                self.emit(Payload::UserInterrupt(interrupt));
                self.interrupt_turn("The user interrupted the turn.", said_so_far.to_owned());
            }
            UserEvent::ToolConfirmation(mut confirmation) => {
                let id = confirmation.tool_use_id.as_str();
                let call = expect_pending(&self.state, id, ActionKind::ToolConfirmation)?;
                confirmation.tool = Some(call);
                if confirmation.result == Verdict::Allow {
                    confirmation.reason = None;
                }
                self.emit(Payload::UserToolConfirmation(confirmation));
            }
            UserEvent::CustomToolResult(result) => {
                expect_pending(&self.state, result.tool_use_id.as_str(), ActionKind::CustomTool)?;
                self.emit(Payload::UserCustomToolResult(result));
            }
            UserEvent::ClarifyResult(result) => {
                expect_pending(&self.state, result.request_id.as_str(), ActionKind::Clarify)?;
                self.emit(Payload::UserClarifyResult(result));
            }
            UserEvent::SudoResult(answered) => {
                expect_pending(&self.state, answered.request_id.as_str(), ActionKind::Sudo)?;
                self.emit(Payload::UserSudoResult(answered));
            }
            UserEvent::SecretResult(answered) => {
                expect_pending(&self.state, answered.request_id.as_str(), ActionKind::Secret)?;
                self.emit(Payload::UserSecretResult(answered));
            }
        }
        Ok(())
    }
}

fn refuse_while_busy(state: &State) -> Result<(), Refusal> {
    let (Some(turn), Some(turn_id)) = (&state.turn, state.turn_id()) else { return Ok(()) };
    let turn_id = turn_id.to_string();
    let pending = turn.pending_ids();
    if turn.is_paused() && !pending.is_empty() {
        Err(Refusal::ActionRequired { turn_id, pending })
    } else {
        Err(Refusal::TurnInProgress { turn_id })
    }
}

/// Checks that `id` waits for this kind of answer, and names the tool that it is about.
fn expect_pending(state: &State, id: &str, got: ActionKind) -> Result<String, Refusal> {
    let pending = || state.pending().map(|action| action.id.to_owned()).collect();
    match state.pending().find(|action| action.id == id) {
        None => Err(Refusal::NotPending { id: id.to_owned(), pending: pending() }),
        Some(action) if action.kind != got => Err(Refusal::WrongAnswer {
            id: id.to_owned(),
            expected: action.kind.answered_by(),
            got: got.answered_by(),
            pending: pending(),
        }),
        Some(action) => Ok(action.call.tool.clone()),
    }
}
