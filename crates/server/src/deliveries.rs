//! `/deliveries`: webhooks and callbacks on their way out, and what became of them.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use jiff::Timestamp;
use petasos_core::delivery::{Attempt, Delivery, DeliveryStatus, Subject};
use petasos_core::ids::{DeliveryId, RunId, SessionId};
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, TenantCredentials};
use petasos_store::{DeliveryFilter, Page};
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::json;

use crate::auth::{Administers, ReadsSessions, WritesSessions};
use crate::openapi::{Api, Operation};
use crate::path;
use crate::problem::Problem;
use crate::query::Query;
use crate::surfaces::conversation::CodedError;

pub(crate) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let statuses = DeliveryStatus::ALL.map(DeliveryStatus::as_str);
    let text = || json!({ "type": "string" });
    let list = Operation::new::<DeliveryPage>("listDeliveries", "Deliveries, newest first.", read)
        .query("status", "Only those that stand there.", json!({ "type": "string", "enum": statuses }))
        .query("session_id", "Only those about this session.", text())
        .query("run_id", "Only those of this run.", text())
        .pages(100, 20);
    let one = Operation::new::<DeliveryShown>("getDelivery", "One delivery with its attempts.", read);
    let replay =
        Operation::new::<DeliveryShown>("replayDelivery", "Delivers the same once more.", write).accepted();
    let credentials = Operation::new::<CredentialsShown>(
        "getDeliveryCredentials",
        "The token and the signing secret that a tenant's receivers know its deliveries by.",
        KeyScope::Admin,
    );
    Api::default()
        .get("/deliveries/credentials", get(get_credentials), credentials.fails_with::<CodedError>())
        .get("/deliveries", get(list_deliveries), list.fails_with::<CodedError>())
        .get("/deliveries/{deliveryId}", get(get_delivery), one.fails_with::<CodedError>())
        .post("/deliveries/{deliveryId}/replay", post(replay_delivery), replay.fails_with::<CodedError>())
}

/// What a delivery tells about.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Event,
    Callback,
}

/// A webhook or callback on its way out.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Delivery")]
pub(crate) struct DeliveryShown {
    id: DeliveryId,
    kind: Kind,
    /// The session that it tells about.
    session_id: SessionId,
    /// The run that it tells about.
    run_id: Option<RunId>,
    /// The offset of the event that it tells about.
    offset: Option<u64>,
    /// Where it goes.
    url: String,
    /// By what the receiver knows it again.
    webhook_id: String,
    status: DeliveryStatus,
    /// What was tried, oldest first.
    attempts: Vec<AttemptShown>,
    /// When it is tried next; null while it waits for those before it, and when it is settled.
    next_attempt_at: Option<String>,
    created_at: String,
    /// The delivery that is made again by this one.
    replay_of: Option<DeliveryId>,
}

/// One attempt to deliver.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeliveryAttempt")]
struct AttemptShown {
    at: String,
    /// What the receiver answered; null if no answer came.
    status_code: Option<u16>,
    /// Why it failed; null if it did not.
    error: Option<String>,
    duration_ms: u64,
}

/// A part of the list of deliveries.
#[derive(Serialize, JsonSchema)]
struct DeliveryPage {
    items: Vec<DeliveryShown>,
    /// Where to go on; null at the end.
    next_cursor: Option<String>,
}

/// What a tenant's receivers know its deliveries by.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeliveryCredentials")]
struct CredentialsShown {
    /// Deliveries carry it as `authorization: Bearer`.
    token: String,
    /// Deliveries are signed with it, as Standard Webhooks describes: `whsec_` and base64.
    secret: String,
}

impl From<Attempt> for AttemptShown {
    fn from(attempt: Attempt) -> Self {
        let Attempt { at, status_code, error, duration_ms } = attempt;
        AttemptShown { at: at.to_string(), status_code, error, duration_ms }
    }
}

impl From<Delivery> for DeliveryShown {
    fn from(delivery: Delivery) -> Self {
        let (kind, session_id, run_id, offset) = match delivery.subject {
            Subject::Event { session_id, offset } => (Kind::Event, session_id, None, Some(offset)),
            Subject::Callback { run_id, session_id } => (Kind::Callback, session_id, Some(run_id), None),
        };
        DeliveryShown {
            id: delivery.id,
            kind,
            session_id,
            run_id,
            offset,
            url: delivery.url,
            webhook_id: delivery.webhook_id,
            status: delivery.status,
            attempts: delivery.attempts.into_iter().map(AttemptShown::from).collect(),
            next_attempt_at: delivery.next_attempt_at.map(|at: Timestamp| at.to_string()),
            created_at: delivery.created_at.to_string(),
            replay_of: delivery.replay_of,
        }
    }
}

async fn list_deliveries(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<DeliveryPage>, Problem> {
    let filter = DeliveryFilter {
        status: status(&query)?,
        session_id: query.parsed("session_id", "the id of a session")?,
        run_id: query.parsed("run_id", "the id of a run")?,
    };
    let Page { items, next } = engine.deliveries(&tenant, filter, query.page()?).await?;
    let items = items.into_iter().map(DeliveryShown::from).collect();
    Ok(Json(DeliveryPage { items, next_cursor: next.map(|cursor| cursor.0) }))
}

fn status(query: &Query) -> Result<Option<DeliveryStatus>, Problem> {
    let Some(text) = query.text("status") else { return Ok(None) };
    let found = DeliveryStatus::ALL.into_iter().find(|status| status.as_str() == text);
    let all = DeliveryStatus::ALL.map(DeliveryStatus::as_str).join(", ");
    found.map(Some).ok_or_else(|| Problem::validation("status", format!("{text:?} is none of {all}")))
}

async fn get_delivery(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(id): Path<String>,
) -> Result<Json<DeliveryShown>, Problem> {
    let id = path::id("delivery", &id)?;
    Ok(Json(engine.delivery(&tenant, &id).await?.into()))
}

async fn get_credentials(
    State(engine): State<Engine>,
    Administers(tenant): Administers,
) -> Json<CredentialsShown> {
    let TenantCredentials { token, secret } = engine.delivery_credentials(&tenant);
    let shown = |text: secrecy::SecretString| text.expose_secret().to_owned();
    Json(CredentialsShown { token: shown(token), secret: shown(secret) })
}

async fn replay_delivery(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<DeliveryShown>), Problem> {
    let id = path::id("delivery", &id)?;
    let replay = engine.replay_delivery(&tenant, &id).await?;
    Ok((StatusCode::ACCEPTED, Json(replay.into())))
}
