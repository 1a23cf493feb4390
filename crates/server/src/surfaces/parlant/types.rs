//! Events as they are on the wire.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::surfaces::conversation::requests::Listing;

/// All kinds.
pub(super) const KINDS: [&str; 4] = ["message", "status", "tool", "custom"];

/// Everybody whom an event can be from.
pub(super) const SOURCES: [&str; 6] =
    ["customer", "customer_ui", "human_agent", "human_agent_on_behalf_of_ai_agent", "ai_agent", "system"];

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ParlantEvent")]
pub(super) struct RawEvent {
    pub(super) id: String,
    /// Who it is from.
    pub(super) source: String,
    /// `message`, `status`, `tool` or `custom`.
    pub(super) kind: &'static str,
    pub(super) offset: u64,
    pub(super) creation_utc: String,
    /// The same for all events of a turn.
    pub(super) trace_id: String,
    /// The same as `trace_id`.
    pub(super) correlation_id: String,
    pub(super) data: Value,
    pub(super) metadata: Map<String, Value>,
    pub(super) deleted: bool,
}

/// A page if one was asked for, and all there is otherwise.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Parlant{T}Listing")]
#[expect(dead_code, reason = "it describes an answer, of which the whole list is written row by row")]
pub(super) enum Listed<T> {
    All(Vec<T>),
    Page(Listing<T>),
}
