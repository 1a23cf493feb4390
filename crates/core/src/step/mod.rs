//! The pure step of a turn.
//!
//! [`step`] takes the folded state and one input and says which events to append, all of them in one commit.
//! [`effects`] says what must be going on in a given state. There is nothing else to a turn: a driver appends
//! the events, carries out the effects, and feeds back what comes of them. After a crash it folds the log,
//! feeds [`Input::Recover`], and carries on.

mod budget;
mod compaction;
mod effects;
mod input;
mod model;
mod next;
mod planned;
mod refusal;
mod run;
mod stop;
mod tool;
mod user;

use jiff::Timestamp;

use crate::event::{Event, MessagePlace, Payload};
use crate::limits::Limits;
use crate::state::State;

pub use effects::{Effect, effects};
pub use input::{Change, Input, Opening, ReadOnlyCalls, UserEvent};
pub use planned::{Emitted, Permission, PlannedAnswer, PlannedCall, PlannedPart, ToolKind};
pub use refusal::Refusal;
pub use stop::CRASH_LOOP;

/// Says what one input appends to the log. The state itself is not changed; fold the events to do that.
pub fn step(state: &State, input: Input, limits: &Limits, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut step = Step { state: state.clone(), limits, now, events: Vec::new() };
    match input {
        Input::User { events, said_so_far, opening } => {
            // What was sent is dropped as a whole, so it is the state before it that stands in the way.
            step.user(events, &said_so_far, opening).map_err(|refusal| user::as_seen_from(state, refusal))?;
        }
        Input::TextBegan { call } => step.text_began(call),
        Input::ModelFinished { call, model, outcome } => step.model_finished(call, model, outcome),
        Input::CompactionFinished { call, compacted, summary_call } => {
            step.compaction_finished(call, compacted, summary_call);
        }
        Input::ToolFinished { id, content, is_error } => step.tool_finished(&id, content, is_error),
        Input::ResultTransformed { tool_use_id, text } => step.result_transformed(tool_use_id, text),
        Input::ThreadSent { tool_use_id, message } => step.thread_sent(&tool_use_id, message),
        Input::ThreadReceived { tool_use_id, message } => step.thread_received(&tool_use_id, message),
        Input::RunStarted { opened, message, opening } => step.start_run(opened, message, opening)?,
        Input::RunEnded { run_id, error } => step.end_run(&run_id, error),
        Input::DeadlinePassed => step.deadline_passed(),
        Input::ActionsExpired => step.actions_expired(),
        Input::Recover { passwords, read_only_calls } => step.recover(&passwords, read_only_calls),
        Input::GivenUp { message } => step.give_up(message),
        Input::Change(change) => step.change(change)?,
        Input::Archive => step.archive(),
    }
    while let Some(payload) = next::next(&step.state, step.limits) {
        step.emit(payload);
    }
    Ok(step.events)
}

/// A step under way: a scratch copy of the state that already contains what was emitted.
struct Step<'a> {
    state: State,
    limits: &'a Limits,
    now: Timestamp,
    events: Vec<Event>,
}

impl Step<'_> {
    fn emit(&mut self, payload: Payload) {
        let waits = match payload {
            // An interrupt with nothing to interrupt has no effect to wait for.
            Payload::UserInterrupt(_) => self.state.turn.is_some(),
            // What opens no turn waits for none.
            Payload::UserMessage(ref message) => message.place != MessagePlace::Kept,
            _ => payload.is_from_user(),
        };
        let event = Event {
            session_id: self.state.session_id.clone(),
            sequence: self.state.view.last_sequence + 1,
            created_at: self.now,
            processed_at: (!waits).then_some(self.now),
            payload,
        };
        self.state.apply(&event);
        self.events.push(event);
    }
}
