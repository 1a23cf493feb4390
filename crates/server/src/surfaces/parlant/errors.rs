//! Errors as `{"detail": text}`.

use axum::Json;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
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

/// Gives every error below `/parlant` this shape, also those that no handler of ours has made.
pub(crate) async fn as_detail(request: Request, next: Next) -> Response {
    let is_ours = request.uri().path().split('/').nth(1) == Some("parlant");
    let response = next.run(request).await;
    match response.extensions().get::<Said>().cloned() {
        Some(said) if is_ours => {
            let (mut parts, _) = response.into_parts();
            parts.headers.remove(header::CONTENT_LENGTH);
            let status = match parts.status {
                StatusCode::BAD_REQUEST => StatusCode::UNPROCESSABLE_ENTITY,
                status => status,
            };
            (status, parts.headers, Json(Detail { detail: said.message })).into_response()
        }
        _ => response,
    }
}
