//! What people and applications send.

use crate::conversation::{ConversationChange, Mode};
use crate::event::{
    CustomToolResult, EventsDeleted, MessagePlace, Payload, PersonNote, PromptPrepared, Scope, UserInterrupt,
    UserMessage, Verdict,
};
use crate::state::{ActionKind, Call, PendingAction, State};

use super::tool::FinishedCall;
use super::{Change, Opening, Refusal, Step, UserEvent};

impl Step<'_> {
    pub(super) fn user(
        &mut self,
        events: Vec<UserEvent>,
        said_so_far: &str,
        mut opening: Opening,
    ) -> Result<(), Refusal> {
        if self.state.view.archived_at.is_some() {
            return Err(Refusal::Archived);
        }
        for event in events {
            self.user_event(event, said_so_far, &mut opening)?;
        }
        if let Some(text) = opening.prompt {
            self.emit(Payload::PromptPrepared(PromptPrepared { text }));
        }
        Ok(())
    }

    fn user_event(
        &mut self,
        event: UserEvent,
        said_so_far: &str,
        opening: &mut Opening,
    ) -> Result<(), Refusal> {
        match event {
            UserEvent::Message(message) => self.message(message, opening)?,
            UserEvent::Supersede(message) => {
                self.give_way("A new message came in.");
                self.message(message, opening)?;
            }
            UserEvent::Steer(steer) => self.emit(Payload::UserSteer(steer)),
            UserEvent::Interrupt(interrupt) => {
                self.emit(Payload::UserInterrupt(interrupt));
                self.interrupt_turn("The user interrupted the turn.", said_so_far.to_owned());
            }
            UserEvent::ToolConfirmation(mut confirmation) => {
                let id = confirmation.tool_use_id.as_str();
                let call = expect_pending(&self.state, id, ActionKind::ToolConfirmation)?;
                let mut grants = match &confirmation.pattern {
                    Some(pattern) if !call.patterns.contains(pattern) => {
                        let (pattern, offered) = (pattern.clone(), call.patterns.clone());
                        return Err(Refusal::UnknownPattern { pattern, offered });
                    }
                    Some(pattern) => vec![call.command_grant(pattern).to_text()],
                    None => call.grants(),
                }
                .into_iter();
                confirmation.tool = grants.next();
                confirmation.also = grants.collect();
                // Leave to go on over a budget is good for as much again, and for no longer.
                if call.budget.is_some() {
                    confirmation.scope = Scope::Once;
                }
                let denied = confirmation.result == Verdict::Deny;
                confirmation.reason = confirmation.reason.filter(|why| denied && !why.trim().is_empty());
                self.emit(Payload::UserToolConfirmation(confirmation));
            }
            UserEvent::CustomToolResult(result) => {
                expect_pending(&self.state, result.tool_use_id.as_str(), ActionKind::CustomTool)?;
                self.emit(Payload::UserCustomToolResult(result));
            }
            UserEvent::ToolResult(result) => self.answered_for(result)?,
            UserEvent::Settings(settings) => self.emit(Payload::SettingsChanged(settings)),
            UserEvent::PersonMessage(message) => self.emit(Payload::PersonMessage(message)),
            UserEvent::PersonNote(note) => self.note(note, opening),
            UserEvent::Application(event) => self.emit(Payload::ApplicationEvent(event)),
            UserEvent::Conversation(change) => self.conversation(change),
            UserEvent::DeleteEvents(deleted) => self.delete_events(deleted),
            UserEvent::EventMetadata(changed) => self.emit(Payload::EventMetadataChanged(changed)),
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

    fn message(&mut self, mut message: UserMessage, opening: &mut Opening) -> Result<(), Refusal> {
        // Whoever sends answers and a message together cannot know that somebody else has ended the turn.
        let joins = message.place == MessagePlace::JoinsTurn && self.state.turn.is_some();
        if joins {
            refuse_while_pending(&self.state)?;
        } else if self.state.conversation.mode == Mode::Manual {
            message.place = MessagePlace::Kept;
        } else {
            message.place = MessagePlace::OpensTurn;
            refuse_while_busy(&self.state)?;
        }
        self.open(Payload::UserMessage(message), opening);
        Ok(())
    }

    fn note(&mut self, mut note: PersonNote, opening: &mut Opening) {
        note.opens_turn &= self.state.conversation.mode == Mode::Auto;
        if note.opens_turn {
            self.give_way("A person gave the agent something else to do.");
        }
        self.open(Payload::PersonNote(note), opening);
    }

    /// Emits what may open a turn, after what that turn is told first.
    pub(super) fn open(&mut self, payload: Payload, opening: &mut Opening) {
        if payload.opens_turn()
            && let Some(customer) = opening.customer.take()
        {
            self.emit(Payload::CustomerVariables(customer));
        }
        self.emit(payload);
    }

    pub(super) fn change(&mut self, change: Change) -> Result<(), Refusal> {
        let Change { title, metadata, conversation, settings } = change;
        if (conversation.is_some() || settings.is_some()) && self.state.view.archived_at.is_some() {
            return Err(Refusal::Archived);
        }
        if let Some(settings) = settings {
            refuse_while_busy(&self.state)?;
            self.emit(Payload::SettingsChanged(settings));
        }
        if let Some(titled) = title {
            self.emit(Payload::Titled(titled));
        }
        if let Some(metadata) = metadata {
            self.emit(Payload::MetadataChanged { metadata });
        }
        if let Some(change) = conversation {
            self.conversation(change);
        }
        Ok(())
    }

    fn conversation(&mut self, change: ConversationChange) {
        if change.mode == Some(Mode::Manual) {
            self.give_way("A person took over.");
        }
        self.emit(Payload::ConversationChanged(change));
    }

    fn delete_events(&mut self, deleted: EventsDeleted) {
        if deleted.from <= self.state.view.last_sequence {
            self.give_way("What the turn is about was deleted.");
            self.emit(Payload::EventsDeleted(deleted));
        }
    }

    /// Ends the turn under way, if there is one, for something else. What was said of its answer so far is dropped:
    /// nobody who follows a conversation has seen half a message.
    fn give_way(&mut self, why: &str) {
        if self.state.turn.is_some() {
            self.emit(Payload::UserInterrupt(UserInterrupt { message: Some(why.to_owned()) }));
            self.interrupt_turn(why, String::new());
        }
    }

    /// Ends a call of ours that waits for a person with what came in its place.
    fn answered_for(&mut self, result: CustomToolResult) -> Result<(), Refusal> {
        let id = result.tool_use_id.as_str();
        let waits =
            |action: &PendingAction<'_>| action.call.id == id && action.kind != ActionKind::CustomTool;
        let Some(call) = self.state.pending().find(waits).map(|action| action.call.clone()) else {
            return Err(not_pending(&self.state, id));
        };
        let (content, is_error) = (result.content, result.is_error);
        self.emit_result(FinishedCall { id: &call.id, tool: &call.tool, kind: call.kind, content, is_error });
        Ok(())
    }
}

fn refuse_while_pending(state: &State) -> Result<(), Refusal> {
    match (state.turn_id(), pending_ids(state)) {
        (Some(turn_id), pending) if !pending.is_empty() => {
            Err(Refusal::ActionRequired { turn_id: turn_id.to_string(), pending })
        }
        _ => Ok(()),
    }
}

fn pending_ids(state: &State) -> Vec<String> {
    state.pending().map(|action| action.id.to_owned()).collect()
}

fn not_pending(state: &State, id: &str) -> Refusal {
    Refusal::NotPending { id: id.to_owned(), pending: pending_ids(state) }
}

pub(super) fn refuse_while_busy(state: &State) -> Result<(), Refusal> {
    let (Some(turn), Some(turn_id)) = (&state.turn, state.turn_id()) else { return Ok(()) };
    let turn_id = turn_id.to_string();
    let pending = turn.pending_ids();
    if turn.is_paused() && !pending.is_empty() {
        Err(Refusal::ActionRequired { turn_id, pending })
    } else {
        Err(Refusal::TurnInProgress { turn_id })
    }
}

/// The same refusal with what stands in the way in another state.
pub(super) fn as_seen_from(state: &State, refusal: Refusal) -> Refusal {
    let pending = pending_ids(state);
    match refusal {
        Refusal::TurnInProgress { .. } => refuse_while_busy(state).err().unwrap_or(refusal),
        Refusal::ActionRequired { turn_id, .. } => Refusal::ActionRequired { turn_id, pending },
        Refusal::NotPending { id, .. } if pending.contains(&id) => Refusal::SettledTwice { id, pending },
        Refusal::NotPending { id, .. } => Refusal::NotPending { id, pending },
        Refusal::WrongAnswer { id, expected, got, .. } => Refusal::WrongAnswer { id, expected, got, pending },
        Refusal::SettledTwice { .. } | Refusal::UnknownPattern { .. } | Refusal::Archived => refusal,
    }
}

/// The call that waits for this kind of answer under this id.
fn expect_pending<'a>(state: &'a State, id: &str, got: ActionKind) -> Result<&'a Call, Refusal> {
    match state.pending().find(|action| action.id == id) {
        None => Err(not_pending(state, id)),
        Some(action) if action.kind != got => Err(Refusal::WrongAnswer {
            id: id.to_owned(),
            expected: action.kind.answered_by(),
            got: got.answered_by(),
            pending: pending_ids(state),
        }),
        Some(action) => Ok(action.call),
    }
}
