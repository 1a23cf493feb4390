//! Reading the events of a session.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing;
use petasos_core::ids::{EventId, SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use serde_json::json;

use super::errors::Detail;
use super::types::{KINDS, RawEvent, SOURCES};
use super::view::RawView;
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;
use crate::surfaces::conversation::follow::{self, Filter, Reading};
use crate::surfaces::conversation::requests::kinds;
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let read = KeyScope::SessionsRead;
    let number = |default: u64| json!({ "type": "integer", "minimum": 0, "default": default });
    let text = || json!({ "type": "string" });
    Api::default()
        .get(
            "/parlant/sessions/{sessionId}/events",
            routing::get(list),
            Operation::new::<Vec<RawEvent>>(
                "parlantListEvents",
                "The events of a session; waits for the next one if there is none.",
                read,
            )
            .query("min_offset", "The first offset that is wanted.", number(0))
            .query("source", "Only those from this source.", json!({ "enum": SOURCES }))
            .query("trace_id", "Only those of this turn.", text())
            .query("correlation_id", "The same as `trace_id`.", text())
            .query("kinds", "A comma list of kinds.", text())
            .query("wait_for_data", "How many seconds to wait if there is nothing.", number(60))
            .query("sse", "A stream of events.", json!({ "type": "boolean", "default": false }))
            .may_stream()
            .fails_with::<Detail>(),
        )
        .get(
            "/parlant/sessions/{sessionId}/events/{eventId}",
            routing::get(get),
            Operation::new::<RawEvent>("parlantReadEvent", "One event of a session.", read)
                .query(
                    "wait_for_completion",
                    "Has no effect: messages are whole.",
                    json!({ "type": "boolean" }),
                )
                .fails_with::<Detail>(),
        )
}

async fn list(
    State(app): State<App>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
    query: Query,
    headers: HeaderMap,
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let reading = Reading::read(&query, &headers)?;
    let kinds = kinds(query.text("kinds"), &KINDS)?;
    let wanted = |name: &str| query.text(name).map(str::to_owned);
    refuse_unknown_source(query.text("source"))?;
    let (source, trace) = (wanted("source"), wanted("trace_id").or_else(|| wanted("correlation_id")));
    let filter: Filter<RawEvent> = Box::new(move |event| {
        (kinds.is_empty() || kinds.contains(&event.kind))
            && source.as_ref().is_none_or(|source| *source == event.source)
            && trace.as_ref().is_none_or(|trace| *trace == event.trace_id)
    });
    // Whoever waits, waits with as little as possible.
    drop((query, headers));
    let fold = view(&app.engine, &tenant, &session_id).await?;
    follow::respond(&app, &tenant, &session_id, fold, reading, filter, until).await
}

fn refuse_unknown_source(source: Option<&str>) -> Result<(), Problem> {
    match source.filter(|source| !SOURCES.contains(source)) {
        None => Ok(()),
        Some(source) => {
            let problem = format!("{source:?} is not a source; there are: {}", SOURCES.join(", "));
            Err(Problem::validation("source", problem))
        }
    }
}

async fn get(
    State(app): State<App>,
    ReadsSessions(tenant): ReadsSessions,
    Path((session, event)): Path<(String, String)>,
) -> Result<Json<RawEvent>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    Ok(Json(one(&app, &tenant, &session_id, &event).await?))
}

/// A fold for the events of a session, as they are now.
async fn view(engine: &Engine, tenant: &TenantId, session_id: &SessionId) -> Result<RawView, Problem> {
    let header = engine.session(tenant, session_id).await?.header;
    Ok(RawView::of(&header, engine.amendments(tenant, session_id).await?))
}

/// An event by its id.
pub(super) async fn one(
    app: &App,
    tenant: &TenantId,
    session_id: &SessionId,
    event: &str,
) -> Result<RawEvent, Problem> {
    let fold = view(&app.engine, tenant, session_id).await?;
    let not_found = || Problem::not_found("event", event);
    let sequence = EventId::sequence_in(event, session_id).ok_or_else(not_found)?;
    follow::one(app, tenant, session_id, fold, sequence).await?.ok_or_else(not_found)
}
