//! `POST /routines/{id}/trigger`: asks for a run.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::ids::RoutineId;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, Error, Trigger, Triggered};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::runs::{Run, show};
use crate::auth::WritesSessions;
use crate::body::{Raw, parse};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::surfaces::conversation::CodedError;

/// The most characters of an idempotency key.
const MAX_KEY: usize = 255;

pub(super) fn api() -> Api {
    let trigger = Operation::new::<Run>(
        "triggerRoutine",
        "Asks for a run. A known idempotency key answers 200 with the run as it is now.",
        KeyScope::SessionsWrite,
    );
    Api::default().post(
        "/routines/{routineId}/trigger",
        routing::post(trigger_routine),
        trigger.takes::<TriggerRequest>().accepted().or_ok().fails_with::<CodedError>(),
    )
}

/// What a run is asked for with.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "AutonomousTriggerRequest")]
pub(crate) struct TriggerRequest {
    /// Checked against the routine's `input_schema`.
    #[serde(default)]
    input: Map<String, Value>,
    /// The URL that gets the run when it is settled.
    callback_url: String,
    /// The session that the run is to be a turn of. Otherwise one is made for it, and removed after the callback.
    #[serde(default)]
    session_id: Option<String>,
    /// Under the same key the same run is meant.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    idempotency_key: Option<String>,
    /// Sent back with the callback as it is.
    #[serde(default)]
    metadata: Map<String, Value>,
}

async fn trigger_routine(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(routine): Path<String>,
    Raw(body): Raw,
) -> Result<(StatusCode, Json<Run>), Problem> {
    let routine_id: RoutineId = id("routine", &routine)?;
    // A routine that is not there is missed before the body is looked at.
    engine.routine(&tenant, &routine_id).await?;
    let triggered = engine.trigger(&tenant, &routine_id, read(&body)?).await?;
    let (status, run) = match triggered {
        Triggered::Accepted(run) => (StatusCode::ACCEPTED, run),
        Triggered::Known(run) => (StatusCode::OK, run),
    };
    Ok((status, Json(show(&engine, run).await?)))
}

fn read(body: &[u8]) -> Result<Trigger, Problem> {
    let request: TriggerRequest = parse(body)?;
    if let Some(key) = &request.idempotency_key
        && !(1..=MAX_KEY).contains(&key.chars().count())
    {
        return Err(Problem::validation("idempotency_key", format!("must have 1 to {MAX_KEY} characters")));
    }
    let session_id = request.session_id.map(|text| {
        text.parse().map_err(|_| Error::SessionUnusable { problem: format!("there is no session {text}") })
    });
    Ok(Trigger {
        input: request.input,
        callback_url: Some(request.callback_url),
        session_id: session_id.transpose()?,
        idempotency_key: request.idempotency_key,
        metadata: request.metadata,
        fingerprint: petasos_engine::fingerprint(&parse(body)?),
    })
}
