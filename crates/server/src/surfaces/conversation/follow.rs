//! Reading a conversation as it goes on: what is there, a wait for what comes next, a stream.
//!
//! Waiting is done on the session's feed, which an append wakes; nothing looks at the store in between.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use petasos_core::event::Event;
use petasos_core::ids::{SessionId, TenantId};
use petasos_engine::Reader;
use serde::Serialize;
use tokio::time::{Instant, timeout, timeout_at};

use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Rows};
use crate::server::App;
use crate::sse::{self, Frame, Frames};
use crate::valid_keys::Until;

/// How long a reader waits unless it says so.
const DEFAULT_WAIT: u64 = 60;
/// The longest that a reader waits.
const MAX_WAIT: u64 = 24 * 60 * 60;
/// Clients give up when their own time is over, which is often the same as the wait; an answer comes a little before.
const EARLY: Duration = Duration::from_millis(500);
/// Waits from here on end early.
const LONG_WAIT: Duration = Duration::from_secs(10);
/// The most events of one answer. Whoever has so many asks again from the last one.
const MAX_EVENTS: usize = 10_000;
/// No log is as long as this.
const MAX_OFFSET: u64 = 1 << 62;

/// A fold of the log into what one dialect shows. A new one is right at the beginning of any turn.
pub(crate) trait Fold: Send + 'static {
    /// An event as it is shown.
    type Shown: Serialize + Send + 'static;

    /// Takes the next event of the log into account, and returns what is shown of it.
    fn push(&mut self, event: &Event) -> Option<Self::Shown>;
}

/// Which events are shown.
pub(crate) type Filter<T> = Box<dyn Fn(&T) -> bool + Send + Sync>;

/// How a conversation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The first offset that is shown.
    from: u64,
    wait: Duration,
    streams: bool,
}

impl Reading {
    /// Reads `min_offset`, `wait_for_data`, `sse` and `Last-Event-ID`.
    pub(crate) fn read(query: &Query, headers: &HeaderMap) -> Result<Self, Problem> {
        let from: u64 = query.parsed("min_offset", "an offset: 0, 1, 2, …")?.unwrap_or(0);
        let wait: u64 = query.parsed("wait_for_data", "a number of whole seconds")?.unwrap_or(DEFAULT_WAIT);
        let streams = query.parsed("sse", "true or false")?.unwrap_or(false);
        let after: Option<u64> = match headers.get("last-event-id").filter(|last| !last.is_empty()) {
            None => None,
            Some(last) => {
                let problem = || Problem::validation("Last-Event-ID", "is not an offset");
                Some(last.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(problem)?)
            }
        };
        let from = after.map_or(0, |last| last.saturating_add(1)).max(from).min(MAX_OFFSET);
        Ok(Reading { from, wait: Duration::from_secs(wait.min(MAX_WAIT)), streams })
    }
}

/// Answers with the events of a session: those that are there, or the next ones, or a stream of them.
pub(crate) async fn respond<F: Fold>(
    app: &App,
    tenant: &TenantId,
    session_id: &SessionId,
    fold: F,
    reading: Reading,
    filter: Filter<F::Shown>,
    until: Until,
) -> Result<Response, Problem> {
    let reader = app.engine.follow_turns(tenant, session_id, reading.from + 1).await?;
    let mut shown = Shown { reader, fold, from: reading.from, filter, until };
    if reading.streams {
        let (session_id, wait) = (session_id.clone(), reading.wait);
        return Ok(sse::respond(app, Streamed { shown, session_id, wait }));
    }
    let early = if reading.wait < LONG_WAIT { Duration::ZERO } else { EARLY };
    let deadline = Instant::now() + reading.wait - early;
    let until = shown.until.clone();
    let mut first = None;
    while first.is_none() && !shown.reader.is_up_to_date() {
        let event = shown.next_of_log().await?.ok_or_else(|| gone(session_id))?;
        first = shown.push(&event);
    }
    let mut has_waited = false;
    if first.is_none() && !reading.wait.is_zero() {
        let Ok(next) = timeout_at(deadline, shown.next()).await else { return Err(timed_out()) };
        first = Some(next?.ok_or_else(|| gone(session_id))?.1);
        has_waited = true;
    }
    let events = Events { shown, first, has_waited, count: 0, session_id: session_id.clone() };
    rows::respond("[".into(), events, until).await
}

/// The events that are there, as they are read from the log.
struct Events<F: Fold> {
    shown: Shown<F>,
    first: Option<F::Shown>,
    /// Whether the first one was waited for. What was appended together with it is answered together.
    has_waited: bool,
    count: usize,
    session_id: SessionId,
}

impl<F: Fold> Events<F> {
    fn has_more(&self) -> bool {
        let reader = &self.shown.reader;
        let is_there = if self.has_waited { reader.is_ready() } else { !reader.is_up_to_date() };
        is_there && self.count < MAX_EVENTS
    }
}

impl<F: Fold> Rows for Events<F> {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        let mut next = self.first.take();
        while next.is_none() && self.has_more() {
            let event = self.shown.next_of_log().await?.ok_or_else(|| gone(&self.session_id))?;
            next = self.shown.push(&event);
        }
        self.count += 1;
        next.map(|event| rows::json(&event)).transpose()
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok("]".into())
    }
}

/// One event of a session, if there is such a one and it is shown.
pub(crate) async fn one<F: Fold>(
    app: &App,
    tenant: &TenantId,
    session_id: &SessionId,
    mut fold: F,
    sequence: u64,
) -> Result<Option<F::Shown>, Problem> {
    let sequence = sequence.min(MAX_OFFSET);
    let mut reader = app.engine.follow_turns(tenant, session_id, sequence).await?;
    while !reader.is_up_to_date() {
        let Some(event) = reader.next_event().await? else { return Err(gone(session_id)) };
        let shown = fold.push(&event);
        if event.sequence >= sequence {
            return Ok(shown.filter(|_| event.sequence == sequence));
        }
    }
    Ok(None)
}

/// The events of a session as one dialect shows them.
struct Shown<F: Fold> {
    reader: Reader,
    fold: F,
    from: u64,
    filter: Filter<F::Shown>,
    until: Until,
}

impl<F: Fold> Shown<F> {
    /// The next event that is shown, with its offset; none when the session is gone.
    async fn next(&mut self) -> Result<Option<(u64, F::Shown)>, Problem> {
        while let Some(event) = self.next_of_log().await? {
            if let Some(shown) = self.push(&event) {
                return Ok(Some((event.sequence.saturating_sub(1), shown)));
            }
        }
        Ok(None)
    }

    async fn next_of_log(&mut self) -> Result<Option<std::sync::Arc<Event>>, Problem> {
        tokio::select! {
            event = self.reader.next_event() => Ok(event?),
            problem = self.until.over() => Err(problem),
        }
    }

    fn push(&mut self, event: &Event) -> Option<F::Shown> {
        let shown = self.fold.push(event)?;
        (event.sequence > self.from && (self.filter)(&shown)).then_some(shown)
    }
}

/// A stream that ends when nothing has come for as long as its reader wants to wait.
struct Streamed<F: Fold> {
    shown: Shown<F>,
    session_id: SessionId,
    wait: Duration,
}

impl<F: Fold> Frames for Streamed<F> {
    async fn next(&mut self) -> Option<Frame> {
        // What is there already is not waited for.
        let mut ready = None;
        while ready.is_none() && !self.shown.reader.is_up_to_date() {
            let event = self.shown.next_of_log().await.ok()??;
            let offset = event.sequence.saturating_sub(1);
            ready = self.shown.push(&event).map(|shown| (offset, shown));
        }
        let (offset, shown) = match ready {
            Some(ready) => ready,
            None => match timeout(self.wait, self.shown.next()).await.ok()? {
                Ok(next) => next?,
                Err(_) => {
                    // The reader comes back with the last offset that it has, and finds the rest in the log.
                    tracing::debug!(session_id = %self.session_id, "a stream ends");
                    return None;
                }
            },
        };
        sse::with_json(Frame::default().id(offset), &shown)
    }
}

fn gone(session_id: &SessionId) -> Problem {
    Problem::not_found("session", session_id.as_str())
}

fn timed_out() -> Problem {
    let message = "Request timed out";
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "wait_timed_out", message)
}
