//! Errors as `{"code", "message", "details"}`, the shape that conversations, routines and deliveries share.

use axum::Json;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::Said;

/// The first parts of the paths whose errors look like this.
const OURS: [&str; 4] = ["conversation", "routines", "runs", "deliveries"];

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

/// Gives every error below our paths this shape, also those that no handler of ours has made.
pub(crate) async fn as_coded(request: Request, next: Next) -> Response {
    let first = request.uri().path().split('/').nth(1).unwrap_or_default();
    let is_ours = OURS.contains(&first);
    let response = next.run(request).await;
    match response.extensions().get::<Said>().cloned() {
        Some(said) if is_ours => {
            let (mut parts, _) = response.into_parts();
            parts.headers.remove(header::CONTENT_LENGTH);
            let (status, code, details) = words(parts.status, said.code, said.fields);
            let body = CodedError { code, message: said.message, details };
            (status, parts.headers, Json(body)).into_response()
        }
        _ => response,
    }
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
