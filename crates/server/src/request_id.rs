//! A name for every request, so that an answer and a line of the log can be brought together.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Takes the caller's `x-request-id` or makes one, and sends it back.
pub(crate) async fn tag(request: Request, next: Next) -> Response {
    let given = request.headers().get(HEADER).filter(|id| is_plain(id)).cloned();
    let id = given.or_else(|| HeaderValue::from_str(&format!("req_{}", Uuid::now_v7().simple())).ok());
    let span = match id.as_ref().and_then(|id| id.to_str().ok()) {
        Some(request_id) => {
            let (method, path) = (request.method(), request.uri().path());
            tracing::info_span!("request", request_id, %method, path)
        }
        None => tracing::Span::none(),
    };
    let mut response = next.run(request).instrument(span).await;
    if let Some(id) = id {
        response.headers_mut().insert(HEADER, id);
    }
    response
}

fn is_plain(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}
