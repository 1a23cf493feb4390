//! `GET /health`: says that the server answers, and what is wrong all the same. It needs no key.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use petasos_core::key::KeyScope;
use petasos_core::recovery::WorkKind;
use petasos_engine::{Engine, SetAsideWork};
use schemars::JsonSchema;
use serde::Serialize;

use crate::openapi::{Api, Operation};

/// The most pieces of work that are shown. The log of the server names all of them.
const MOST_SHOWN: usize = 100;

pub(crate) fn api() -> Api {
    let operation = Operation::new::<Health>("health", "Whether the server answers.", KeyScope::Admin).open();
    Api::default().get("/health", get(health), operation)
}

/// That the server answers.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Health {
    /// `ok`, or `degraded` if something is wrong although requests are served.
    status: &'static str,
    version: &'static str,
    /// What is wrong.
    problems: Vec<String>,
    /// Work that was under way each time that the server died, several times in a row. It does not start by itself.
    set_aside: Vec<SetAside>,
}

/// A piece of work that is set aside.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetAside {
    kind: WorkKind,
    /// The session that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The tool call, run, routine or delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Since when.
    since: String,
    /// Whether it is not tried again.
    given_up: bool,
    /// What happened and what happens next.
    message: &'static str,
}

impl From<SetAsideWork> for SetAside {
    fn from(work: SetAsideWork) -> Self {
        SetAside {
            kind: work.kind,
            session_id: work.session_id.map(|id| id.to_string()),
            id: work.id,
            since: work.since.to_string(),
            given_up: work.given_up,
            message: work.message,
        }
    }
}

async fn health(State(engine): State<Engine>) -> Json<Health> {
    let problems = engine.problems();
    let set_aside: Vec<SetAside> =
        engine.set_aside().into_iter().take(MOST_SHOWN).map(SetAside::from).collect();
    let is_well = problems.is_empty() && set_aside.is_empty();
    let status = if is_well { "ok" } else { "degraded" };
    Json(Health { status, version: env!("CARGO_PKG_VERSION"), problems, set_aside })
}
