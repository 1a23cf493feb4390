//! `GET /health`: says that the server answers. It needs no key.

use axum::Json;
use axum::routing::get;
use petasos_core::key::KeyScope;
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
    status: &'static str,
    version: &'static str,
}

async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}
