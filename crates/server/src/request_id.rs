//! A name for every request, so that an answer and a line of the log can be brought together.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use tracing::Span;
use uuid::Uuid;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The caller's `x-request-id`, or one that we make.
pub(crate) struct RequestId(Option<HeaderValue>);

impl RequestId {
    pub(crate) fn of(request: &Request) -> Self {
        let given = request.headers().get(HEADER).filter(|id| is_plain(id));
        // A copy: the caller's is a part of all that was read from it, which would be kept until the answer.
        let given = given.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok());
        let made = || HeaderValue::from_str(&format!("req_{}", Uuid::now_v7().simple())).ok();
        RequestId(given.or_else(made))
    }

    /// The name itself.
    pub(crate) fn as_str(&self) -> Option<&str> {
        self.0.as_ref().and_then(|id| id.to_str().ok())
    }

    /// What lines of the log about this request stand under.
    pub(crate) fn span(&self, request: &Request) -> Span {
        match self.as_str() {
            Some(request_id) => {
                let (method, path) = (request.method(), request.uri().path());
                tracing::info_span!("request", request_id, %method, path)
            }
            None => Span::none(),
        }
    }

    /// Sends it back.
    pub(crate) fn put_on(self, response: &mut Response) {
        if let Some(id) = self.0 {
            response.headers_mut().insert(HEADER, id);
        }
    }
}

fn is_plain(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
}
