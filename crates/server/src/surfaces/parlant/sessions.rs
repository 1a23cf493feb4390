//! Sessions in raw shape.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing;
use futures_util::future::ready;
use futures_util::{Stream, StreamExt, TryStreamExt};
use petasos_core::conversation::{LabelChange, Mode, labels_problem};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::session::SessionRecord;
use petasos_engine::{Engine, SessionDetail};
use petasos_store::{Page, PageRequest, SessionFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::GUEST;
use super::errors::Detail;
use super::types::Listed;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Pages};
use crate::surfaces::conversation::requests::{self, ChangeOf, Listing, OldestFirst, Open};
use crate::surfaces::conversation::{Patch, delete_session};
use crate::valid_keys::Until;

/// Sessions that are read at once where all are wanted.
const PAGE: usize = 100;
/// The most that Parlant takes, less than other surfaces do.
const MAX_TITLE_CHARS: usize = 200;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let text = || json!({ "type": "string" });
    let filtered = |operation: Operation| {
        operation.query("agent_id", "Only those of this agent.", text()).query(
            "customer_id",
            "Only those of this customer.",
            text(),
        )
    };
    Api::default()
        .post(
            "/parlant/sessions",
            routing::post(create),
            Operation::new::<Session>("parlantCreateSession", "Opens a session.", write)
                .takes::<CreateSession>()
                .query("allow_greeting", "Has no effect.", json!({ "type": "boolean" }))
                .creates()
                .fails_with::<Detail>(),
        )
        .get(
            "/parlant/sessions",
            routing::get(list),
            filtered(Operation::new::<Listed<Session>>(
                "parlantListSessions",
                "Sessions, oldest first.",
                read,
            ))
            .query("labels", "Only those with all of these labels.", text())
            .query("sort", "Oldest or newest first.", json!({ "enum": ["asc", "desc"], "default": "asc" }))
            .query("limit", "Asks for a page.", json!({ "type": "integer", "minimum": 1, "maximum": 100 }))
            .query("cursor", "`next_cursor` of the page before.", text())
            .fails_with::<Detail>(),
        )
        .delete(
            "/parlant/sessions",
            routing::delete(delete_many),
            filtered(Operation::new::<()>("parlantDeleteSessions", "Removes all of these sessions.", write))
                .empty()
                .fails_with::<Detail>(),
        )
        .get(
            "/parlant/sessions/{sessionId}",
            routing::get(get),
            Operation::new::<Session>("parlantGetSession", "A session.", read).fails_with::<Detail>(),
        )
        .patch(
            "/parlant/sessions/{sessionId}",
            routing::patch(change),
            Operation::new::<Session>("parlantChangeSession", "Changes a session.", write)
                .takes::<ChangeSession>()
                .fails_with::<Detail>(),
        )
        .delete(
            "/parlant/sessions/{sessionId}",
            routing::delete(delete_session),
            Operation::new::<()>("parlantDeleteSession", "Removes a session.", write)
                .empty()
                .fails_with::<Detail>(),
        )
}

/// A session in raw shape.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantSession")]
pub(super) struct Session {
    id: SessionId,
    agent_id: AgentId,
    /// `guest` if there is none.
    customer_id: String,
    creation_utc: String,
    title: Option<String>,
    mode: Mode,
    consumption_offsets: Offsets,
    metadata: Map<String, Value>,
    labels: BTreeSet<String>,
}

/// How far readers are.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[schemars(rename = "ParlantOffsets")]
struct Offsets {
    client: Option<u64>,
}

impl From<SessionDetail> for Session {
    fn from(detail: SessionDetail) -> Self {
        let conversation = detail.state.conversation;
        Session {
            id: detail.header.id,
            agent_id: detail.header.agent_id,
            customer_id: detail.header.user_id.unwrap_or_else(|| GUEST.to_owned()),
            creation_utc: format!("{:.3}", detail.header.created_at),
            title: detail.state.view.title,
            mode: conversation.mode,
            consumption_offsets: Offsets { client: conversation.client_offset },
            metadata: detail.state.view.metadata,
            labels: conversation.labels,
        }
    }
}

/// What a session is opened with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantCreateSession")]
struct CreateSession {
    agent_id: String,
    customer_id: Option<String>,
    title: Option<String>,
    metadata: Option<Map<String, Value>>,
    labels: Option<BTreeSet<String>>,
}

/// What can be changed about a session.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeSession")]
struct ChangeSession {
    consumption_offsets: Option<Offsets>,
    title: Option<String>,
    mode: Option<Mode>,
    /// A session stays with its customer; this can only repeat it.
    customer_id: Option<String>,
    /// A session stays with its agent; this can only repeat it.
    agent_id: Option<String>,
    metadata: Option<Patch>,
    labels: Option<ChangeLabels>,
}

/// Labels to add and to take away.
#[derive(Deserialize, JsonSchema, Default)]
#[schemars(rename = "ParlantChangeLabels")]
struct ChangeLabels {
    upsert: Option<BTreeSet<String>>,
    remove: Option<BTreeSet<String>>,
}

impl From<ChangeLabels> for LabelChange {
    fn from(change: ChangeLabels) -> Self {
        LabelChange { add: change.upsert.unwrap_or_default(), remove: change.remove.unwrap_or_default() }
    }
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<CreateSession>,
) -> Result<(StatusCode, Json<Session>), Problem> {
    requests::check_title(body.title.as_deref(), MAX_TITLE_CHARS)?;
    let labels = body.labels.unwrap_or_default();
    if let Some(problem) = labels_problem(&labels) {
        return Err(Problem::validation("labels", problem));
    }
    let open = Open {
        agent_id: &body.agent_id,
        customer_id: body.customer_id.filter(|customer| customer != GUEST),
        title: body.title,
        metadata: body.metadata,
        labels,
    };
    Ok((StatusCode::CREATED, Json(open.carry_out(&engine, &tenant).await?.into())))
}

fn filter(query: &Query) -> Result<SessionFilter, Problem> {
    let filter = requests::filter(query, OldestFirst(true))?;
    Ok(match filter.user_id.as_deref() {
        Some(GUEST) => SessionFilter { user_id: None, without_user: true, ..filter },
        _ => filter,
    })
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
    until: Until,
) -> Result<Response, Problem> {
    let filter = filter(&query)?;
    let labels: Vec<String> = query.all("labels").map(str::to_owned).collect();
    if query.text("limit").is_none() {
        let read = move |page| {
            let (engine, tenant, filter) = (engine.clone(), tenant.clone(), filter.clone());
            let labels = labels.clone();
            async move {
                let Page { items, next } = engine.sessions(&tenant, filter, page).await?;
                let shown = labelled(&engine, &tenant, items, labels).map(|session| rows::json(&session?));
                Ok(Page { items: shown.try_collect().await?, next })
            }
        };
        return rows::respond("[".into(), Pages::new(read, "]"), until).await;
    }
    let PageRequest { mut after, limit } = query.page()?;
    let mut items: Vec<Session> = Vec::new();
    loop {
        let page = PageRequest { after, limit: limit - items.len() };
        let page = engine.sessions(&tenant, filter.clone(), page).await?;
        let found: Vec<Session> =
            labelled(&engine, &tenant, page.items, labels.clone()).try_collect().await?;
        items.extend(found);
        after = page.next;
        if after.is_none() || items.len() >= limit {
            break;
        }
    }
    let total_count = count(&engine, &tenant, filter, labels).await?;
    let listing: Listing<Session> = Listing::of(Page { items, next: after }, total_count);
    Ok(Json(listing).into_response())
}

/// Those of some sessions that have all of these labels.
fn labelled(
    engine: &Engine,
    tenant: &TenantId,
    listed: Vec<SessionRecord>,
    labels: Vec<String>,
) -> impl Stream<Item = Result<Session, Problem>> + Send + use<> {
    let has_all = move |detail: &SessionDetail| {
        labels.iter().all(|label| detail.state.conversation.labels.contains(label))
    };
    let details = engine.session_details(tenant, listed);
    details.try_filter(move |detail| ready(has_all(detail))).map_ok(Session::from).map_err(Problem::from)
}

/// How many sessions fit.
async fn count(
    engine: &Engine,
    tenant: &TenantId,
    filter: SessionFilter,
    labels: Vec<String>,
) -> Result<u64, Problem> {
    if labels.is_empty() {
        return Ok(engine.count_sessions(tenant, filter).await?);
    }
    let (mut count, mut after) = (0, None);
    loop {
        let page = engine.sessions(tenant, filter.clone(), PageRequest { after, limit: PAGE }).await?;
        let fitting = labelled(engine, tenant, page.items, labels.clone());
        count += fitting.try_fold(0, |count, _| ready(Ok(count + 1))).await?;
        after = page.next;
        if after.is_none() {
            return Ok(count);
        }
    }
}

async fn delete_many(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    query: Query,
) -> Result<StatusCode, Problem> {
    let filter = filter(&query)?;
    loop {
        let page = PageRequest { after: None, limit: PAGE };
        let page = engine.sessions(&tenant, filter.clone(), page).await?;
        if page.items.is_empty() {
            return Ok(StatusCode::NO_CONTENT);
        }
        for record in page.items {
            match engine.delete_session(&tenant, &record.header.id).await {
                // Somebody else was faster.
                Ok(()) | Err(petasos_engine::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<Session>, Problem> {
    Ok(Json(engine.session_detail(&tenant, &id("session", &session)?).await?.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<ChangeSession>,
) -> Result<Json<Session>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    requests::check_title(body.title.as_deref(), MAX_TITLE_CHARS)?;
    let detail = engine.session_detail(&tenant, &session_id).await?;
    stays("agent_id", body.agent_id.as_deref(), detail.header.agent_id.as_str())?;
    stays("customer_id", body.customer_id.as_deref(), detail.header.user_id.as_deref().unwrap_or(GUEST))?;
    let change = ChangeOf {
        title: body.title,
        metadata: body.metadata,
        mode: body.mode,
        client_offset: body.consumption_offsets.and_then(|offsets| offsets.client),
        labels: body.labels.map(LabelChange::from),
    };
    Ok(Json(change.carry_out(&engine, &tenant, &session_id).await?.into()))
}

fn stays(field: &str, wanted: Option<&str>, actual: &str) -> Result<(), Problem> {
    match wanted {
        Some(wanted) if wanted != actual => {
            Err(Problem::validation(field, format!("is {actual} for good; open another session")))
        }
        _ => Ok(()),
    }
}
