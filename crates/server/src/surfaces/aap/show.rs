//! Shows a turn while it runs: as events, or whole when it is over.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use axum::http::StatusCode;
use petasos_core::event::{CutShort, Event, Failure, MessagePlace, Payload, StopReason as Stopped};
use petasos_engine::{Engine, Item, Reader, SESSION_DELETED};
use tokio_util::sync::CancellationToken;

use super::content;
use super::deltas::Deltas;
use super::story::{Fact, Messages, Narrator};
use super::types::{AgentResponse, StopReason, StreamMode, TurnEvent};
use crate::problem::Problem;
use crate::sse::{self, Frame, Frames};

/// What is known about a turn when it begins.
pub(super) struct Show {
    narrator: Narrator,
    /// Calls whose results the application sent itself.
    told: BTreeSet<String>,
    /// The last event that the application sent. The session may have become idle before it.
    begins_at: u64,
    /// Whether what ends the turn is the end of its session.
    deleted: bool,
}

impl Show {
    pub(super) fn new(narrator: Narrator, told: BTreeSet<String>, begins_at: u64) -> Self {
        Show { narrator, told, begins_at, deleted: false }
    }

    /// What an event says that the application does not know.
    fn facts(&mut self, event: &Event) -> impl Iterator<Item = Fact> {
        if let Payload::UserInterrupt(interrupt) = &event.payload {
            self.deleted = interrupt.message.as_deref() == Some(SESSION_DELETED);
        }
        let told = &self.told;
        let facts = self.narrator.tell(event).into_iter();
        facts.filter(move |fact| !matches!(fact, Fact::Result { id, .. } if told.contains(id)))
    }

    /// Why the turn stops with this event, if it does.
    fn stop(&self, event: &Event) -> Option<StopReason> {
        match &event.payload {
            // There will be no history that says how far it came.
            Payload::StatusIdle(_) if self.deleted => Some(StopReason::Error),
            Payload::StatusIdle(idle) if event.sequence > self.begins_at => {
                Some(stop_reason(&idle.stop_reason))
            }
            // A person answers in this session: the message is there for them, and no turn runs.
            Payload::UserMessage(message)
                if message.place == MessagePlace::Kept && event.sequence == self.begins_at =>
            {
                Some(StopReason::EndTurn)
            }
            _ => None,
        }
    }
}

fn stop_reason(stopped: &Stopped) -> StopReason {
    match stopped {
        Stopped::RequiresAction { .. } => StopReason::ToolUse,
        Stopped::EndTurn { reason: None, .. } => StopReason::EndTurn,
        Stopped::EndTurn { reason: Some(CutShort::MaxTokens), .. } => StopReason::MaxTokens,
        Stopped::EndTurn { reason: Some(CutShort::Refusal), .. } => StopReason::Refusal,
        // The protocol's word for a conversation that no longer fits.
        Stopped::Error { code, .. } if code == Failure::CONTEXT_TOO_LONG => StopReason::MaxTokens,
        Stopped::Error { .. } => StopReason::Error,
    }
}

/// What comes next of a turn.
enum Next {
    Durable(Arc<Event>),
    Live(petasos_engine::Live),
    /// The session is gone, or cannot be read.
    Gone,
    /// The server stops, and the turn goes on at the next start; or it is not for this key any more.
    Stopping,
}

async fn next(reader: &mut Reader, stopping: &CancellationToken) -> Next {
    let item = tokio::select! {
        item = reader.next() => item,
        () = stopping.cancelled() => return Next::Stopping,
    };
    match item {
        Ok(Some(Item::Durable(event))) => Next::Durable(event),
        Ok(Some(Item::Live(live))) => Next::Live(live),
        Ok(None) => Next::Gone,
        Err(error) => {
            tracing::warn!(%error, "a turn is shown no further because the log cannot be read");
            Next::Gone
        }
    }
}

/// A turn that is shown when it is over.
pub(super) struct Whole {
    engine: Engine,
    reader: Reader,
    show: Show,
    stopping: CancellationToken,
}

impl Whole {
    pub(super) fn new(engine: Engine, reader: Reader, show: Show, stopping: CancellationToken) -> Self {
        Whole { engine, reader, show, stopping }
    }

    /// Waits for the end of the turn.
    pub(super) async fn read(mut self) -> Result<AgentResponse, Problem> {
        let mut messages = Messages::default();
        let stop_reason = loop {
            match next(&mut self.reader, &self.stopping).await {
                Next::Durable(event) => {
                    self.show.facts(&event).for_each(|fact| messages.add(fact));
                    if let Some(stop_reason) = self.show.stop(&event) {
                        break stop_reason;
                    }
                }
                Next::Live(_) => {}
                // All sessions are let go of when the engine stops.
                Next::Gone if self.engine.is_stopping() => return Err(goes_on_later()),
                Next::Gone => break StopReason::Error,
                Next::Stopping => return Err(goes_on_later()),
            }
        };
        Ok(AgentResponse { stop_reason, messages: messages.into_answer() })
    }
}

/// The turn was taken, so whoever sends it again has it twice.
fn goes_on_later() -> Problem {
    let message = "The server is shutting down. The turn was taken and goes on after the restart: do not send it again, \
                   read the session's history then.";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message).no_retry()
}

/// A turn that is shown while it runs.
pub(super) struct Streamed {
    reader: Reader,
    show: Show,
    stopping: CancellationToken,
    /// What was shown of the message under way; none if messages are shown whole.
    deltas: Option<Deltas>,
    ready: VecDeque<TurnEvent>,
    stopped: bool,
}

impl Streamed {
    pub(super) fn new(reader: Reader, show: Show, stopping: CancellationToken, mode: StreamMode) -> Self {
        let deltas = (mode == StreamMode::Delta).then(Deltas::default);
        let ready = VecDeque::from([TurnEvent::TurnStart {}]);
        Streamed { reader, show, stopping, deltas, ready, stopped: false }
    }

    fn durable(&mut self, event: &Event) {
        let facts: Vec<Fact> = self.show.facts(event).collect();
        let events = facts.into_iter().filter_map(|fact| event_of(fact, self.deltas.as_mut()));
        self.ready.extend(events);
        if let Some(stop_reason) = self.show.stop(event) {
            self.stop(stop_reason);
        }
    }

    fn stop(&mut self, stop_reason: StopReason) {
        self.ready.push_back(TurnEvent::TurnStop { stop_reason });
        self.stopped = true;
    }
}

impl Frames for Streamed {
    /// The next frame; none after `turn_stop`, which always comes.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return sse::with_json(Frame::default().event(event.name()), &event);
            }
            if self.stopped {
                return None;
            }
            match next(&mut self.reader, &self.stopping).await {
                Next::Durable(event) => self.durable(&event),
                Next::Live(live) => {
                    let piece = self.deltas.as_mut().and_then(|deltas| deltas.hear(live));
                    self.ready.extend(piece);
                }
                Next::Gone | Next::Stopping => self.stop(StopReason::Error),
            }
        }
    }
}

/// The event that shows a fact, if there is one.
fn event_of(fact: Fact, deltas: Option<&mut Deltas>) -> Option<TurnEvent> {
    match (fact, deltas) {
        (Fact::System(_) | Fact::User(_), _) => None,
        (Fact::NewMessage, deltas) => {
            if let Some(deltas) = deltas {
                deltas.begin();
            }
            None
        }
        (Fact::Thinking(text), Some(deltas)) => deltas.thinking(&text),
        (Fact::Text(text), Some(deltas)) => deltas.text(&text),
        (Fact::Thinking(thinking), None) => Some(TurnEvent::Thinking { thinking }),
        (Fact::Text(text), None) => Some(TurnEvent::Text { text }),
        (Fact::Call { id, name, input }, _) => Some(TurnEvent::ToolCall { tool_call_id: id, name, input }),
        (Fact::Result { id, content }, _) => {
            Some(TurnEvent::ToolResult { tool_call_id: id, content: content::shown(content) })
        }
    }
}
