//! JSON bodies, with errors that say what is wrong with them.

use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use bytes::Bytes;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A JSON body. The content type is not looked at: whoever sends JSON here means it.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| unreadable(&rejection))?;
        // An absent body is an empty object, for requests that have nothing to say.
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let parsed = serde_json::from_slice(bytes);
        parsed
            .map(Body)
            .map_err(|error| Problem::validation("body", format!("is not what is expected here: {error}")))
    }
}

fn unreadable(rejection: &BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let message =
            "The body is too large; limits.body_bytes in the configuration says how large it may be.";
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
    } else {
        Problem::validation("body", "could not be read")
    }
}
