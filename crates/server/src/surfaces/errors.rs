//! Errors in the shape of the surface that a request is for, also those that no handler has made.

use axum::http::{StatusCode, header};
use axum::response::Response;

use super::{aap, conversation, parlant};
use crate::problem::Said;

/// How a surface writes an error; none if that is the usual way.
pub(crate) struct Shape(Option<fn(StatusCode, Said) -> Response>);

impl Shape {
    /// The shape of errors below a path.
    pub(crate) fn of(path: &str) -> Self {
        Shape(match path.split('/').nth(1) {
            Some("aap") => Some(aap::error),
            Some("conversation" | "routines" | "runs" | "deliveries") => Some(conversation::error),
            Some("parlant") => Some(parlant::error),
            _ => None,
        })
    }

    /// Gives it to an answer that is an error.
    pub(crate) fn give(&self, response: Response) -> Response {
        let said = response.extensions().get::<Said>().cloned();
        let (Some(shape), Some(said)) = (self.0, said) else { return response };
        let (mut parts, _) = response.into_parts();
        parts.headers.remove(header::CONTENT_LENGTH);
        parts.headers.remove(header::CONTENT_TYPE);
        let mut shaped = shape(parts.status, said);
        shaped.headers_mut().extend(parts.headers);
        shaped
    }
}
