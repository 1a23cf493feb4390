//! Errors in the protocol's shape: `{"error": text}`.

use axum::Json;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::types::ErrorBody;
use crate::problem::Said;

/// Gives every error below `/aap` the protocol's shape, also those that no handler of ours has made.
pub(crate) async fn as_protocol(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_ours = path == "/aap" || path.starts_with("/aap/");
    let response = next.run(request).await;
    match response.extensions().get::<Said>().cloned() {
        Some(Said { message: error, .. }) if is_ours => {
            let (mut parts, _) = response.into_parts();
            parts.headers.remove(header::CONTENT_LENGTH);
            (parts.status, parts.headers, Json(ErrorBody { error })).into_response()
        }
        _ => response,
    }
}
