//! The envelope around every event that is listed or streamed.

use jiff::Timestamp;
use petasos_core::event::Event;
use petasos_core::ids::{EventId, SessionId};
use petasos_engine::{Live, LiveKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::milliseconds;
use super::payload::{self, Payload, Said};

/// An event as clients see it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Event")]
pub(super) struct Envelope<'a> {
    id: String,
    r#type: &'static str,
    session_id: &'a SessionId,
    /// Goes up within the session, and may skip numbers.
    sequence: u64,
    /// `pending` for a user event that the session has not taken up yet, else `complete`.
    status: &'static str,
    payload: Payload<'a>,
    processed_at: Option<String>,
    created_at: String,
}

impl<'a> Envelope<'a> {
    /// A durable event; none for internal ones.
    pub(super) fn of(event: &'a Event) -> Option<Self> {
        let (r#type, payload) = (event.payload.type_name(), payload::shown(&event.payload)?);
        Some(Envelope {
            id: event.id().to_string(),
            r#type,
            session_id: &event.session_id,
            sequence: event.sequence,
            status: if event.processed_at.is_some() { "complete" } else { "pending" },
            payload,
            processed_at: event.processed_at.map(milliseconds),
            created_at: milliseconds(event.created_at),
        })
    }

    /// Something that is shown once: the `count`th that this reader is shown.
    pub(super) fn of_live(session_id: &'a SessionId, live: &'a Live, count: u64, now: Timestamp) -> Self {
        let said = || Said::piece(&live.text, live.reset);
        let (r#type, payload) = match live.kind {
            LiveKind::Text => ("agent.message", Payload::AgentMessage(said())),
            LiveKind::Thinking => ("agent.thinking", Payload::AgentThinking(said())),
            LiveKind::Title => ("session.title_updated", Payload::TitleUpdated { title: &live.text }),
        };
        let after = EventId { session_id: session_id.clone(), sequence: live.sequence };
        Envelope {
            id: format!("{after}_live{count}"),
            r#type,
            session_id,
            sequence: live.sequence,
            status: "complete",
            payload,
            processed_at: Some(milliseconds(now)),
            created_at: milliseconds(now),
        }
    }

    /// The type, for the `event:` line of a stream.
    pub(super) fn type_name(&self) -> &'static str {
        self.r#type
    }
}
