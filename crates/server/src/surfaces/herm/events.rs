//! Listing the events of a session.

use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing;
use petasos_core::event::SHOWN_TYPES;
use petasos_core::ids::SessionId;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, LogPart, LogRange};
use petasos_store::Order;
use serde_json::json;

use super::envelope::Envelope;
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Rows};
use crate::valid_keys::Until;

const MAX_LIMIT: usize = 1000;
const DEFAULT_LIMIT: usize = 100;
/// The most bytes of a page's events. A page that reaches it is shorter than asked for, and says where to go on.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;
/// The one type that is streamed and never listed. Nothing of it is in the log, so to ask for it finds nothing.
const LIVE_ONLY: &str = "session.title_updated";

pub(super) fn api() -> Api {
    let operation = Operation::new::<Page<Envelope<'_>>>(
        "listEvents",
        "The events of a session.",
        KeyScope::SessionsRead,
    )
    .query("after", "Only events with a higher sequence.", json!({ "type": "integer", "minimum": 0 }))
    .query("order", "Oldest or newest first.", json!({ "enum": ["asc", "desc"], "default": "asc" }))
    .query("types", "A comma list of event types.", json!({ "type": "string" }))
    .pages(MAX_LIMIT, DEFAULT_LIMIT);
    Api::default().get("/v1/sessions/{sessionId}/events", routing::get(list), operation)
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
    query: Query,
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let limit = query.limit(MAX_LIMIT, DEFAULT_LIMIT)?;
    let order = match query.text("order") {
        None | Some("asc") => Order::Ascending,
        Some("desc") => Order::Descending,
        Some(other) => return Err(Problem::validation("order", format!("{other:?} is not asc or desc"))),
    };
    let mut wanted = LogRange {
        after: query.parsed("after", "a sequence")?,
        before: None,
        types: types(query.text("types"))?,
        order,
        // One more than asked for tells whether there is a next page.
        likely: limit + 1,
    };
    match (query.text("cursor"), order) {
        (None, _) => {}
        (Some(cursor), Order::Ascending) => wanted.after = Some(sequence_of(cursor, 'a')?),
        (Some(cursor), Order::Descending) => wanted.before = Some(sequence_of(cursor, 'd')?),
    }
    let log = engine.log_part(&tenant, &session_id, wanted).await?;
    let head = rows::head(&Page::<Envelope<'_>>::new(Vec::new(), None), &tail(None)?)?;
    let page = EventPage { log, order, limit, count: 0, bytes: 0, last: None, has_more: false };
    rows::respond(head, page, until).await
}

/// What follows the events of a page.
fn tail(next_cursor: Option<String>) -> Result<String, Problem> {
    let cursor = serde_json::to_string(&next_cursor);
    let cursor = cursor.map_err(|_| Problem::internal("a cursor cannot be written"))?;
    Ok(format!(r#"],"nextCursor":{cursor}}}"#))
}

/// A page that holds so many events, and not more bytes than a page may have. One event is always on it.
struct EventPage {
    log: LogPart,
    order: Order,
    limit: usize,
    count: usize,
    bytes: usize,
    /// The sequence of the last event that is on the page, or that is never shown.
    last: Option<u64>,
    has_more: bool,
}

impl Rows for EventPage {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        while let Some(event) = self.log.next().await? {
            if self.count == self.limit {
                self.has_more = true;
                break;
            }
            if let Some(envelope) = Envelope::of(&event) {
                let row = rows::json(&envelope)?;
                if self.count > 0 && self.bytes + row.len() > MAX_PAGE_BYTES {
                    self.has_more = true;
                    break;
                }
                self.bytes += row.len();
                self.count += 1;
                self.last = Some(event.sequence);
                return Ok(Some(row));
            }
            self.last = Some(event.sequence);
        }
        Ok(None)
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        let next = self.last.filter(|_| self.has_more).map(|last| match self.order {
            Order::Ascending => format!("a{last}"),
            Order::Descending => format!("d{last}"),
        });
        Ok(tail(next)?.into())
    }
}

fn sequence_of(cursor: &str, order: char) -> Result<u64, Problem> {
    let sequence = cursor.strip_prefix(order).and_then(|sequence| sequence.parse().ok());
    sequence.ok_or_else(|| Problem::validation("cursor", "is not one that this listing returned"))
}

/// The type names that are wanted: those in the list, or all that clients can see.
fn types(list: Option<&str>) -> Result<Vec<String>, Problem> {
    let Some(list) = list else { return Ok(SHOWN_TYPES.iter().map(|name| (*name).to_owned()).collect()) };
    let mut types = Vec::new();
    for name in list.split(',').map(str::trim) {
        if name != LIVE_ONLY && !SHOWN_TYPES.contains(&name) {
            let problem = format!("{name:?} is not a type; there are: {}", SHOWN_TYPES.join(", "));
            return Err(Problem::validation("types", problem));
        }
        types.push(name.to_owned());
    }
    Ok(types)
}
