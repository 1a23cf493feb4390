//! Listing the events of a session.

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing;
use petasos_core::event::SHOWN_TYPES;
use petasos_core::ids::SessionId;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use petasos_store::{EventQuery, Order};
use serde_json::json;

use super::envelope::Envelope;
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

const MAX_LIMIT: usize = 1000;
const DEFAULT_LIMIT: usize = 100;
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
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let limit = query.limit(MAX_LIMIT, DEFAULT_LIMIT)?;
    let order = match query.text("order") {
        None | Some("asc") => Order::Ascending,
        Some("desc") => Order::Descending,
        Some(other) => return Err(Problem::validation("order", format!("{other:?} is not asc or desc"))),
    };
    let mut wanted = EventQuery {
        after: query.parsed("after", "a sequence")?,
        before: None,
        types: types(query.text("types"))?,
        order,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
    };
    match (query.text("cursor"), order) {
        (None, _) => {}
        (Some(cursor), Order::Ascending) => wanted.after = Some(sequence_of(cursor, 'a')?),
        (Some(cursor), Order::Descending) => wanted.before = Some(sequence_of(cursor, 'd')?),
    }
    let mut events = engine.events(&tenant, &session_id, wanted).await?;
    let more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| more).map(|last| match order {
        Order::Ascending => format!("a{}", last.sequence),
        Order::Descending => format!("d{}", last.sequence),
    });
    let page = Page::new(events.iter().filter_map(Envelope::of).collect(), next);
    Ok(Json(page).into_response())
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
