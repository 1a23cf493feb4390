//! `/routines`: what routines there are.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::ids::RoutineId;
use petasos_core::key::KeyScope;
use petasos_core::routine::{RoutineDefinition, RoutineRecord};
use petasos_engine::{Engine, RoutinePut};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::shown;
use crate::auth::{ReadsAgents, WritesAgents};
use crate::body::{Raw, parse};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::surfaces::conversation::CodedError;

/// What an answer adds to a definition, so that it can be sent back as it came.
const ADDED: [&str; 3] = ["id", "created_at", "updated_at"];

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::AgentsRead, KeyScope::AgentsWrite);
    let (all, one) = ("/routines", "/routines/{routineId}");
    let list = Operation::new::<Routines>("listRoutines", "All routines, by their ids.", read);
    let get = Operation::new::<Routine>("getRoutine", "One routine.", read);
    let put = Operation::new::<Routine>("putRoutine", "Makes or replaces a routine.", write)
        .takes::<PutRoutine>()
        .creates()
        .or_ok();
    let delete = Operation::new::<()>("deleteRoutine", "Removes a routine. Its runs stay.", write).empty();
    Api::default()
        .get(all, routing::get(list_routines), list.fails_with::<CodedError>())
        .get(one, routing::get(get_routine), get.fails_with::<CodedError>())
        .put(one, routing::put(put_routine), put.fails_with::<CodedError>())
        .delete(one, routing::delete(delete_routine), delete.fails_with::<CodedError>())
}

/// A routine.
#[derive(Serialize, JsonSchema)]
struct Routine {
    id: RoutineId,
    #[serde(flatten)]
    definition: RoutineDefinition,
    created_at: String,
    updated_at: String,
}

/// A routine to put. The id and the times have no effect: a routine may be sent back as it was shown.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
struct PutRoutine {
    #[schemars(flatten)]
    definition: RoutineDefinition,
    id: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
}

/// All routines.
#[derive(Serialize, JsonSchema)]
struct Routines {
    items: Vec<Routine>,
}

impl From<RoutineRecord> for Routine {
    fn from(routine: RoutineRecord) -> Self {
        Routine {
            id: routine.id,
            definition: routine.definition,
            created_at: shown(routine.created_at),
            updated_at: shown(routine.updated_at),
        }
    }
}

async fn list_routines(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
) -> Result<Json<Routines>, Problem> {
    let items = engine.routines(&tenant).await?.into_iter().map(Routine::from).collect();
    Ok(Json(Routines { items }))
}

async fn get_routine(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(routine): Path<String>,
) -> Result<Json<Routine>, Problem> {
    Ok(Json(engine.routine(&tenant, &id("routine", &routine)?).await?.into()))
}

async fn put_routine(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(routine): Path<String>,
    Raw(body): Raw,
) -> Result<(StatusCode, Json<Routine>), Problem> {
    let routine_id = routine.parse().map_err(|error| Problem::validation("id", error))?;
    let mut fields: Map<String, Value> = parse(&body)?;
    fields.retain(|name, _| !ADDED.contains(&name.as_str()));
    let definition: RoutineDefinition = parse(Value::Object(fields).to_string().as_bytes())?;
    Ok(match engine.put_routine(&tenant, &routine_id, definition).await? {
        RoutinePut::Created(routine) => (StatusCode::CREATED, Json(routine.into())),
        RoutinePut::Replaced(routine) => (StatusCode::OK, Json(routine.into())),
    })
}

async fn delete_routine(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(routine): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_routine(&tenant, &id("routine", &routine)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
