//! Streaming the events of a session.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing;
use jiff::Timestamp;
use petasos_core::ids::{EventId, SessionId};
use petasos_core::key::KeyScope;
use petasos_engine::{Item, Reader, Start};

use super::envelope::Envelope;
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;
use crate::sse::{self, Frame, Frames};
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let summary = "The events of a session as they happen, as server-sent events.";
    let after = serde_json::json!({ "type": "integer", "minimum": 0 });
    let operation = Operation::new::<Envelope<'_>>("streamEvents", summary, KeyScope::SessionsRead)
        .streams()
        .query("after", "Start after this sequence; 0 replays everything.", after)
        .header("Last-Event-ID", "Start after this sequence or event id; wins over `after`.");
    Api::default().get("/v1/sessions/{sessionId}/events/stream", routing::get(stream), operation)
}

async fn stream(
    State(app): State<App>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
    query: Query,
    headers: HeaderMap,
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let start = start(&session_id, &query, &headers)?;
    let reader = app.engine.follow(&tenant, &session_id, start).await?;
    Ok(sse::respond(&app, Shown { reader, session_id, shown_live: 0, until }))
}

/// Where a stream starts: after `Last-Event-ID`, or after `after`, or with what comes next.
fn start(session_id: &SessionId, query: &Query, headers: &HeaderMap) -> Result<Start, Problem> {
    if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
        let text = last.to_str().unwrap_or_default();
        let sequence = text.parse().ok().or_else(|| EventId::sequence_in(text, session_id));
        let problem =
            || Problem::validation("Last-Event-ID", "is not a sequence or an event id of this session");
        return Ok(Start::After(sequence.ok_or_else(problem)?));
    }
    Ok(query.parsed("after", "a sequence")?.map_or(Start::Now, Start::After))
}

/// The frames of one stream.
struct Shown {
    reader: Reader,
    session_id: SessionId,
    shown_live: u64,
    until: Until,
}

impl Frames for Shown {
    /// The next frame; none when the session is gone, the key is revoked or the server stops.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let item = tokio::select! {
                item = self.reader.next() => item,
                _ = self.until.over() => return None,
            };
            match item {
                Ok(Some(item)) => {
                    if let Some(frame) = self.frame(&item) {
                        return Some(frame);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    // The reader comes back with its Last-Event-ID and finds everything in the log.
                    tracing::warn!(session_id = %self.session_id, %error, "a stream ends because the log cannot be read");
                    return None;
                }
            }
        }
    }
}

impl Shown {
    fn frame(&mut self, item: &Item) -> Option<Frame> {
        match item {
            Item::Durable(event) => {
                let envelope = Envelope::of(event)?;
                let frame = Frame::default().id(event.sequence);
                sse::with_json(frame.event(envelope.type_name()), &envelope)
            }
            Item::Live(live) => {
                self.shown_live += 1;
                let envelope = Envelope::of_live(&self.session_id, live, self.shown_live, Timestamp::now());
                sse::with_json(Frame::default().event(envelope.type_name()), &envelope)
            }
        }
    }
}
