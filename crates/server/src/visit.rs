//! A request that is being answered: what is counted about it, and its line in the log.
//!
//! It goes by its route and not its path, so that ids do not become labels.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};

use crate::metrics::Metrics;
use crate::request_id::RequestId;

pub(crate) struct Visit {
    method: Method,
    matched: Option<MatchedPath>,
    started: Instant,
}

impl Visit {
    pub(crate) fn of(request: &Request) -> Self {
        let matched = request.extensions().get::<MatchedPath>().cloned();
        Visit { method: request.method().clone(), matched, started: Instant::now() }
    }

    /// The answer begins.
    pub(crate) fn answered(&self, status: StatusCode, id: &RequestId, metrics: &Metrics) {
        let (method, path) = (named(&self.method), self.matched.as_ref().map_or("none", MatchedPath::as_str));
        let took = self.started.elapsed();
        metrics.request(method, path, status, took);
        let (request_id, status, ms) = (id.as_str(), status.as_u16(), took.as_secs_f64() * 1000.0);
        // A wait for the next event that ends without one is how readers ask again, and no failure.
        if status >= 500 && status != StatusCode::GATEWAY_TIMEOUT.as_u16() {
            tracing::warn!(request_id, method, path, status, ms, "a request failed");
        } else {
            tracing::debug!(request_id, method, path, status, ms, "a request was answered");
        }
    }
}

/// A method as a label. Anybody can make one up, with a key or without, and each label takes memory for good.
fn named(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}
