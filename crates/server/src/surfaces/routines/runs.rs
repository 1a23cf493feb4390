//! `/runs` and `/routines/{id}/runs`: what became of runs.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::delivery::DeliveryStatus;
use petasos_core::ids::{DeliveryId, RoutineId, RunId, SessionId};
use petasos_core::key::KeyScope;
use petasos_core::run::{RunError, RunRecord, RunStatus};
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::callback::{ORIGIN_SERVICE, SCHEMA_VERSION, outcome};
use super::shown;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::surfaces::conversation::CodedError;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let get = Operation::new::<Run>("getRun", "One run as it is now.", read);
    let of = Operation::new::<Run>("getRunOfRoutine", "One run of a routine as it is now.", read);
    let list =
        Operation::new::<RunPage>("listRuns", "The runs of a routine, newest first.", read).pages(100, 20);
    let cancel = Operation::new::<Run>("cancelRun", "Ends a run before it ends by itself.", write);
    Api::default()
        .get("/runs/{runId}", routing::get(get_run), get.fails_with::<CodedError>())
        .get("/routines/{routineId}/runs/{runId}", routing::get(get_run_of), of.fails_with::<CodedError>())
        .get("/routines/{routineId}/runs", routing::get(list_runs), list.fails_with::<CodedError>())
        .post("/runs/{runId}/cancel", routing::post(cancel_run), cancel.fails_with::<CodedError>())
}

/// One execution of a routine.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Run {
    schema_version: u32,
    run_id: RunId,
    routine_id: RoutineId,
    status: RunStatus,
    /// What it came to; null unless it succeeded.
    output: Option<Map<String, Value>>,
    /// Why it failed; null unless it did.
    error: Option<RunError>,
    session_id: SessionId,
    trace_id: Option<String>,
    /// When its turn opened; null while it waits.
    started_at: Option<String>,
    /// When it was settled; null until then.
    completed_at: Option<String>,
    /// As it was given with the trigger.
    metadata: Map<String, Value>,
    idempotency_key: String,
    origin_service: String,
    /// When it was accepted.
    created_at: String,
    callback: Callback,
}

/// How a run reports.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunCallback")]
struct Callback {
    /// Where it goes; null if nowhere.
    url: Option<String>,
    status: CallbackStatus,
    /// The delivery that brings it; null until the run is settled.
    delivery_id: Option<DeliveryId>,
}

/// Where a callback stands.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum CallbackStatus {
    /// The run does not report.
    None,
    /// The run is not settled, or its callback has not been taken yet.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up.
    Dead,
}

/// A part of a routine's runs.
#[derive(Serialize, JsonSchema)]
struct RunPage {
    items: Vec<Run>,
    next_cursor: Option<String>,
}

/// A run with where its callback stands.
pub(super) async fn show(engine: &Engine, run: RunRecord) -> Result<Run, Problem> {
    let delivery = engine.callback(&run).await?;
    let status = match (&run.given.callback_url, delivery.as_ref().map(|delivery| delivery.status)) {
        (None, _) => CallbackStatus::None,
        (Some(_), None) if !run.status.is_settled() => CallbackStatus::Pending,
        (Some(_), Some(DeliveryStatus::Pending)) => CallbackStatus::Pending,
        (Some(_), Some(DeliveryStatus::Dead | DeliveryStatus::Cancelled)) => CallbackStatus::Dead,
        // A delivery that is not kept any more was taken long ago: one that is dead stays.
        (Some(_), Some(DeliveryStatus::Delivered) | None) => CallbackStatus::Delivered,
    };
    let (output, error) = outcome(&run);
    Ok(Run {
        schema_version: SCHEMA_VERSION,
        run_id: run.id,
        routine_id: run.routine_id,
        status: run.status,
        output,
        error,
        session_id: run.session_id,
        trace_id: Some(run.given.trace_id),
        started_at: run.started_at.map(shown),
        completed_at: run.completed_at.map(shown),
        metadata: run.given.metadata,
        idempotency_key: run.idempotency_key,
        origin_service: ORIGIN_SERVICE.to_owned(),
        created_at: shown(run.created_at),
        callback: Callback {
            url: run.given.callback_url,
            status,
            delivery_id: delivery.map(|delivery| delivery.id),
        },
    })
}

async fn get_run(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(run): Path<String>,
) -> Result<Json<Run>, Problem> {
    let run = engine.run(&tenant, &id("run", &run)?).await?;
    Ok(Json(show(&engine, run).await?))
}

async fn get_run_of(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path((routine, run)): Path<(String, String)>,
) -> Result<Json<Run>, Problem> {
    let routine: RoutineId = id("routine", &routine)?;
    let found = engine.run(&tenant, &id("run", &run)?).await?;
    if found.routine_id != routine {
        return Err(Problem::not_found("run", &run));
    }
    Ok(Json(show(&engine, found).await?))
}

async fn list_runs(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(routine): Path<String>,
    query: Query,
) -> Result<Json<RunPage>, Problem> {
    let page = engine.runs(&tenant, &id("routine", &routine)?, query.page()?).await?;
    let mut items = Vec::with_capacity(page.items.len());
    for run in page.items {
        items.push(show(&engine, run).await?);
    }
    Ok(Json(RunPage { items, next_cursor: page.next.map(|cursor| cursor.0) }))
}

async fn cancel_run(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(run): Path<String>,
) -> Result<Json<Run>, Problem> {
    let run = engine.cancel_run(&tenant, &id("run", &run)?).await?;
    Ok(Json(show(&engine, run).await?))
}
