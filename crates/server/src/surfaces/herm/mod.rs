//! The Herm surface: `/v1/agents` and `/v1/sessions`.
//!
//! Resources and envelopes are camelCase, event payloads snake_case.

mod agents;
mod commands;
mod envelope;
mod events;
mod grants;
mod learned_skills;
mod memories;
mod payload;
mod send;
mod sessions;
mod stream;
mod threads;
mod usage;

use jiff::Timestamp;
use petasos_core::ids::TenantId;
use petasos_core::memory::UserScope;
use schemars::JsonSchema;
pub(crate) use send::read as read_events;

use serde::Serialize;
use serde_json::json;

use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

pub(crate) fn api() -> Api {
    let kept = memories::api().and(learned_skills::api()).and(grants::api());
    let sessions = sessions::api().and(events::api()).and(send::api()).and(stream::api()).and(threads::api());
    agents::api().and(usage::api()).and(sessions).and(commands::api()).and(kept)
}

/// An agent with the user that `userId` names.
fn user_scope(tenant: TenantId, agent: &str, query: &Query) -> Result<UserScope, Problem> {
    let user_id = query.text("userId").filter(|user_id| !user_id.is_empty());
    let user_id =
        user_id.ok_or_else(|| Problem::validation("userId", "is missing; name the user in the query"))?;
    Ok(UserScope { tenant, agent_id: id("agent", agent)?, user_id: user_id.to_owned() })
}

/// The description of a route that needs `userId`.
fn for_user(operation: Operation) -> Operation {
    operation.required_query("userId", "The user whose it is.", json!({ "type": "string", "minLength": 1 }))
}

/// That something is gone.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DeletedThing")]
struct Deleted {
    /// What was deleted: an id or a name.
    id: String,
    deleted: bool,
}

/// A time as resources show it.
fn seconds(at: Timestamp) -> String {
    format!("{at:.0}")
}

/// A time as events show it.
fn milliseconds(at: Timestamp) -> String {
    format!("{at:.3}")
}
