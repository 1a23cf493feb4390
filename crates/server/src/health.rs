//! `GET /health`: says that the server answers, and what is wrong all the same. It needs no key.

use axum::Json;
use axum::extract::State;
use axum::routing::get;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::Serialize;

use crate::openapi::{Api, Operation};

pub(crate) fn api() -> Api {
    let operation = Operation::new::<Health>("health", "Whether the server answers.", KeyScope::Admin).open();
    Api::default().get("/health", get(health), operation)
}

/// That the server answers.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// `ok`, or `degraded` if something is wrong although requests are served.
    status: &'static str,
    version: &'static str,
    /// What is wrong.
    problems: Vec<String>,
}

async fn health(State(engine): State<Engine>) -> Json<Health> {
    let problems = engine.problems();
    let status = if problems.is_empty() { "ok" } else { "degraded" };
    Json(Health { status, version: env!("CARGO_PKG_VERSION"), problems })
}
