//! The subagents of a session. The log of one is read like that of any session, by its id.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::ids::SessionId;
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, ThreadRecord};
use schemars::JsonSchema;
use serde::Serialize;

use super::milliseconds;
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;

/// All subagents of a session, oldest first.
#[derive(Serialize, JsonSchema)]
struct Threads {
    data: Vec<Thread>,
}

/// A subagent.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Thread {
    /// Also the id of a session, whose events are the subagent's log.
    id: String,
    /// What it was told.
    task: String,
    status: ThreadStatus,
    /// What it said when it was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    created_at: String,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ThreadStatus {
    /// It works, or its call was stopped before it was done.
    Open,
    /// Its result is back.
    Done,
}

pub(super) fn api() -> Api {
    let operation =
        Operation::new::<Threads>("listThreads", "The subagents of a session.", KeyScope::SessionsRead);
    Api::default().get("/v1/sessions/{sessionId}/threads", routing::get(list), operation)
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<Threads>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let threads = engine.threads(&tenant, &session_id).await?;
    Ok(Json(Threads { data: threads.into_iter().map(show).collect() }))
}

fn show(thread: ThreadRecord) -> Thread {
    Thread {
        id: thread.id.to_string(),
        task: thread.task,
        status: if thread.result.is_some() { ThreadStatus::Done } else { ThreadStatus::Open },
        result: thread.result,
        created_at: milliseconds(thread.created_at),
    }
}
