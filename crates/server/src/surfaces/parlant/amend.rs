//! Changing what was said: events are deleted from one on, or get other metadata. The log keeps them all, and is shown
//! as if it had always been so.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::amendments::Amendments;
use petasos_core::event::{EventMetadataChanged, EventsDeleted};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::metadata::metadata_problem;
use petasos_core::step::UserEvent;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::errors::Detail;
use super::events::one;
use super::types::RawEvent;
use super::view::RawView;
use crate::auth::WritesSessions;
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;
use crate::surfaces::conversation::{Fold, Patch};

pub(super) fn api() -> Api {
    let write = KeyScope::SessionsWrite;
    let offset = json!({ "type": "integer", "minimum": 0 });
    Api::default()
        .delete(
            "/parlant/sessions/{sessionId}/events",
            routing::delete(delete),
            Operation::new::<()>("parlantDeleteEvents", "Deletes events from one on.", write)
                .query("min_offset", "The first offset to delete, where a turn begins.", offset)
                .empty()
                .fails_with::<Detail>(),
        )
        .patch(
            "/parlant/sessions/{sessionId}/events/{eventId}",
            routing::patch(change),
            Operation::new::<RawEvent>("parlantChangeEvent", "Changes the metadata of an event.", write)
                .takes::<ChangeEvent>()
                .fails_with::<Detail>(),
        )
}

/// What can be changed about an event.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeEvent")]
struct ChangeEvent {
    metadata: Option<Patch>,
}

async fn delete(
    State(app): State<App>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    query: Query,
) -> Result<StatusCode, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let from: Option<u64> = query.parsed("min_offset", "an offset: 0, 1, 2, …")?;
    let from = from.ok_or_else(|| Problem::validation("min_offset", "is missing"))?;
    if let Some(first) = first_of_turn(&app, &tenant, &session_id, from).await? {
        let deleted = EventsDeleted { from: first.saturating_add(1) };
        app.engine.send(&tenant, &session_id, vec![UserEvent::DeleteEvents(deleted)]).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

/// The offset of the first event from an offset on, with which a turn must begin; none if there is none.
async fn first_of_turn(
    app: &App,
    tenant: &TenantId,
    session_id: &SessionId,
    from: u64,
) -> Result<Option<u64>, Problem> {
    let header = app.engine.session(tenant, session_id).await?.header;
    let mut fold = RawView::of(&header, Amendments::default());
    let mut reader = app.engine.follow_turns(tenant, session_id, from.saturating_add(1)).await?;
    let mut earlier = Vec::new();
    while !reader.is_up_to_date() {
        let Some(event) = reader.next_event().await? else { break };
        let Some(shown) = fold.push(&event) else { continue };
        if shown.offset < from {
            earlier.push(shown.trace_id);
        } else if earlier.contains(&shown.trace_id) {
            let problem = format!("{from} is in the middle of a turn; delete from its first event on");
            return Err(Problem::validation("min_offset", problem));
        } else {
            return Ok(Some(shown.offset));
        }
    }
    Ok(None)
}

async fn change(
    State(app): State<App>,
    WritesSessions(tenant): WritesSessions,
    Path((session, event)): Path<(String, String)>,
    Body(body): Body<ChangeEvent>,
) -> Result<Json<RawEvent>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let found = one(&app, &tenant, &session_id, &event).await?;
    let metadata = body.metadata.unwrap_or_default().into_merge();
    if metadata.is_empty() {
        return Ok(Json(found));
    }
    let mut changed = found.metadata;
    changed.extend(metadata.clone());
    changed.retain(|_, value| !value.is_null());
    if let Some(problem) = metadata_problem(&changed) {
        return Err(Problem::validation("metadata", problem));
    }
    let changed = EventMetadataChanged { sequence: found.offset.saturating_add(1), metadata };
    app.engine.send(&tenant, &session_id, vec![UserEvent::EventMetadata(changed)]).await?;
    Ok(Json(one(&app, &tenant, &session_id, &event).await?))
}
