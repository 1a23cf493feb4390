//! Errors in the protocol's shape: `{"error": text}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::types::ErrorBody;
use crate::problem::Said;

/// A problem as the protocol has it.
pub(crate) fn error(status: StatusCode, said: Said) -> Response {
    (status, Json(ErrorBody { error: said.message })).into_response()
}
