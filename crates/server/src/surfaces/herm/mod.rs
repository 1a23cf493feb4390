//! The Herm surface: `/v1/agents` and `/v1/sessions`.
//!
//! Resources and envelopes are camelCase, event payloads snake_case.

mod agents;
mod envelope;
mod events;
mod payload;
mod send;
mod sessions;
mod stream;

use jiff::Timestamp;
pub(crate) use send::read as read_events;

use crate::openapi::Api;
use crate::problem::Problem;

pub(crate) fn api() -> Api {
    agents::api().and(sessions::api()).and(events::api()).and(send::api()).and(stream::api())
}

/// Reads an id of a path. A text that cannot be an id names nothing.
fn id<T: std::str::FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(kind, text))
}

/// A time as resources show it.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A time as events show it.
fn milliseconds(at: Timestamp) -> String {
    format!("{at:.3}")
}
