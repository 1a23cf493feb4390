//! What a run reports when it is settled.

use jiff::Timestamp;
use petasos_core::ids::{RoutineId, RunId, SessionId};
use petasos_core::run::{RunError, RunOutcome, RunRecord, RunStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::shown;
use crate::surfaces::conversation::summary;

pub(super) const SCHEMA_VERSION: u32 = 1;
pub(super) const ORIGIN_SERVICE: &str = "agent-server";

/// What is posted to the `callback_url` of a run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AutonomousCallbackPayload")]
pub(crate) struct CallbackPayload {
    schema_version: u32,
    run_id: RunId,
    routine_id: RoutineId,
    /// `succeeded` or `failed`.
    #[schemars(extend("enum" = ["succeeded", "failed"]))]
    status: RunStatus,
    /// What the run came to; null if it failed.
    output: Option<Map<String, Value>>,
    /// Why it failed; null if it did not.
    error: Option<RunError>,
    session_id: SessionId,
    trace_id: Option<String>,
    started_at: String,
    completed_at: String,
    /// As it was given with the trigger.
    metadata: Map<String, Value>,
    idempotency_key: String,
    origin_service: String,
}

impl CallbackPayload {
    fn of(run: &RunRecord) -> Self {
        let (output, error) = outcome(run);
        let at = |at: Option<Timestamp>| shown(at.unwrap_or(run.created_at));
        CallbackPayload {
            schema_version: SCHEMA_VERSION,
            run_id: run.id.clone(),
            routine_id: run.routine_id.clone(),
            status: run.status,
            output,
            error: error.map(told_outside),
            session_id: run.session_id.clone(),
            trace_id: Some(run.given.trace_id.clone()),
            started_at: at(run.started_at),
            completed_at: at(run.completed_at),
            metadata: run.given.metadata.clone(),
            idempotency_key: run.idempotency_key.clone(),
            origin_service: ORIGIN_SERVICE.to_owned(),
        }
    }
}

/// A failure without what providers and the network wrote: that is for who has a key of this server.
fn told_outside(error: RunError) -> RunError {
    match error.reason().filter(|_| !error.is_wish()) {
        Some(reason) => RunError { message: summary(reason, &error.message), ..error },
        None => error,
    }
}

/// The body of a run's callback.
pub fn callback_body(run: &RunRecord) -> Vec<u8> {
    serde_json::to_vec(&CallbackPayload::of(run)).unwrap_or_default()
}

/// The output and the error of a run, as far as they are there.
pub(super) fn outcome(run: &RunRecord) -> (Option<Map<String, Value>>, Option<RunError>) {
    match &run.outcome {
        None => (None, None),
        Some(RunOutcome::Succeeded { output }) => (Some(output.clone()), None),
        Some(RunOutcome::Failed { error }) => (None, Some(error.clone())),
    }
}
