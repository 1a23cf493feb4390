//! Errors as `{"detail": text}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::Said;

/// The body of an error.
#[derive(Serialize, JsonSchema)]
pub(super) struct Detail {
    /// What happened and what to do.
    detail: String,
}

/// A problem as this dialect has it.
pub(crate) fn error(status: StatusCode, said: Said) -> Response {
    let status = if status == StatusCode::BAD_REQUEST { StatusCode::UNPROCESSABLE_ENTITY } else { status };
    (status, Json(Detail { detail: said.message })).into_response()
}
