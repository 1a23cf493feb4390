//! The Agent Application Protocol, version 3: `/aap/meta` and `/aap/sessions`.
//!
//! An application brings its own tools, turns tools of the agent on and off, and runs turns. Its sessions are sessions
//! like any other: what it sets is in their logs, and everything that it does is seen over every other surface.

mod answers;
mod content;
mod deltas;
mod errors;
mod history;
mod meta;
mod schemas;
mod seed;
mod sessions;
mod settings;
mod show;
mod story;
mod turns;
mod types;

pub(crate) use errors::error;
pub(crate) use schemas::names as schema_names;

use crate::openapi::Api;

pub(crate) fn api() -> Api {
    meta::api().and(sessions::api()).and(history::api()).and(turns::api()).and(schemas::api())
}
