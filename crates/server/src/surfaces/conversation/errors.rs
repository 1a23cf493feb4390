//! Errors as `{"code", "message", "details"}`, the shape that conversations, routines and deliveries share.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Said;

/// The body of an error.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CodedError {
    /// A code for programs.
    code: &'static str,
    /// What happened and what to do, for people.
    message: String,
    /// Fields that help.
    details: Map<String, Value>,
}

/// A problem in this shape.
pub(crate) fn error(status: StatusCode, said: Said) -> Response {
    let (status, code, details) = words(status, said.code, said.fields);
    (status, Json(CodedError { code, message: said.message, details })).into_response()
}

/// The status, code and details that stand for a problem here.
fn words(
    status: StatusCode,
    code: &'static str,
    mut details: Map<String, Value>,
) -> (StatusCode, &'static str, Map<String, Value>) {
    match status {
        StatusCode::BAD_REQUEST if code == "egress_denied" => {
            (StatusCode::UNPROCESSABLE_ENTITY, code, details)
        }
        StatusCode::BAD_REQUEST => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_request", details),
        StatusCode::CONFLICT if code != "conflict" => {
            // Which conflict it is helps whoever has to solve it.
            details.insert("reason".to_owned(), code.into());
            (status, "conflict", details)
        }
        _ => (status, code, details),
    }
}
