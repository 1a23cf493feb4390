//! Errors in the shape of the surface that a request is for, also those that no handler has made.

use std::future::Future;

use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::{aap, conversation, parlant};
use crate::problem::Said;

/// How a surface writes an error.
type Shape = fn(StatusCode, Said) -> Response;

/// The shape of errors below a path; none if it is the usual one.
fn shape_of(path: &str) -> Option<Shape> {
    match path.split('/').nth(1)? {
        "aap" => Some(aap::error),
        "conversation" | "routines" | "runs" | "deliveries" => Some(conversation::error),
        "parlant" => Some(parlant::error),
        _ => None,
    }
}

/// Gives every error the shape of its surface. One layer does this for all of them, since each layer costs memory for
/// as long as a request waits.
pub(crate) fn in_shape(request: Request, next: Next) -> impl Future<Output = Response> + Send {
    let shape = shape_of(request.uri().path());
    let running = next.run(request);
    async move {
        let response = running.await;
        let said = response.extensions().get::<Said>().cloned();
        let (Some(shape), Some(said)) = (shape, said) else { return response };
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        let mut shaped = shape(parts.status, said);
        shaped.headers_mut().extend(parts.headers);
        shaped
    }
}
