//! `GET /health`: says that the server answers. It needs no key.

use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::server::App;

pub(crate) fn router() -> Router<App> {
    Router::new().route("/health", get(health))
}

async fn health() -> Json<Value> {
    Json(json!({ "status": "ok", "version": env!("CARGO_PKG_VERSION") }))
}
