//! The envelope around every event that is listed or streamed.

use jiff::Timestamp;
use petasos_core::event::Event;
use petasos_core::ids::{EventId, SessionId};
use petasos_engine::{Live, LiveKind};
use serde::Serialize;

use super::milliseconds;
use super::payload::{self, Payload, text_blocks};

/// An event as clients see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope<'a> {
    id: String,
    r#type: &'static str,
    session_id: &'a SessionId,
    sequence: u64,
    status: &'static str,
    payload: Typed<'a>,
    processed_at: Option<String>,
    created_at: String,
}

/// A payload with its type repeated inside.
#[derive(Serialize)]
struct Typed<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    payload: Payload<'a>,
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
            payload: Typed { r#type, payload },
            processed_at: event.processed_at.map(milliseconds),
            created_at: milliseconds(event.created_at),
        })
    }

    /// Something that is shown once: the `count`th that this reader is shown.
    pub(super) fn of_live(session_id: &'a SessionId, live: &'a Live, count: u64, now: Timestamp) -> Self {
        let said = || Payload::Said { content: text_blocks(&live.text), delta: true, reset: live.reset };
        let (r#type, payload) = match live.kind {
            LiveKind::Text => ("agent.message", said()),
            LiveKind::Thinking => ("agent.thinking", said()),
            LiveKind::Title => ("session.title_updated", Payload::Title { title: &live.text }),
        };
        let after = EventId { session_id: session_id.clone(), sequence: live.sequence };
        Envelope {
            id: format!("{after}_live{count}"),
            r#type,
            session_id,
            sequence: live.sequence,
            status: "complete",
            payload: Typed { r#type, payload },
            processed_at: Some(milliseconds(now)),
            created_at: milliseconds(now),
        }
    }

    /// The type, for the `event:` line of a stream.
    pub(super) fn type_name(&self) -> &'static str {
        self.r#type
    }
}
