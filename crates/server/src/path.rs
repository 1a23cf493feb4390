//! Paths, and the ids in them.

use std::str::FromStr;

use axum::RequestExt;
use axum::extract::{RawPathParams, Request};
use axum::http::{Method, StatusCode, Uri};

use crate::problem::Problem;

/// Reads an id of a path. A text that cannot be an id names nothing.
pub(crate) fn id<T: FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(kind, text))
}

/// Refuses a path whose ids are not even text, before a handler asks for them: they name nothing either.
pub(crate) async fn refuse_unreadable(request: &mut Request) -> Result<(), Problem> {
    match request.extract_parts::<RawPathParams>().await {
        Ok(_) => Ok(()),
        Err(_) => Err(nothing_at(request.method(), request.uri())),
    }
}

/// There is no such path.
pub(crate) fn nothing_at(method: &Method, uri: &Uri) -> Problem {
    let message = format!("There is nothing at {method} {}.", uri.path());
    Problem::new(StatusCode::NOT_FOUND, "not_found", message)
}
