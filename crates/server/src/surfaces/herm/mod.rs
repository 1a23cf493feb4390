//! The Herm surface: `/v1/agents` and `/v1/sessions`.
//!
//! Resources and envelopes are camelCase, event payloads snake_case.

mod agents;
mod envelope;
mod events;
mod payload;
mod send;
mod sessions;
mod stream;

use axum::Router;
use axum::routing::{get, post};
use jiff::Timestamp;

use crate::problem::Problem;
use crate::server::App;

pub(crate) fn router() -> Router<App> {
    Router::new()
        .route("/v1/agents", get(agents::list).post(agents::create))
        .route("/v1/agents/{id}", get(agents::get).patch(agents::change))
        .route("/v1/agents/{id}/versions", get(agents::versions))
        .route("/v1/agents/{id}/archive", post(agents::archive))
        .route("/v1/agents/{id}/sessions", post(sessions::create))
        .route("/v1/sessions", get(sessions::list))
        .route("/v1/sessions/{id}", get(sessions::get).patch(sessions::change).delete(sessions::delete))
        .route("/v1/sessions/{id}/archive", post(sessions::archive))
        .route("/v1/sessions/{id}/events", get(events::list).post(send::send))
        .route("/v1/sessions/{id}/events/stream", get(stream::stream))
}

/// Reads an id of a path. A text that cannot be an id names nothing.
fn id<T: std::str::FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(kind, text))
}

/// A time as resources show it.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A time as events show it.
fn milliseconds(at: Timestamp) -> String {
    format!("{at:.3}")
}
