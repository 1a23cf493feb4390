//! The same conversations for clients that speak raw Parlant: `/parlant`.
//!
//! Sessions, offsets and customers are those of `/conversation`; an event is the typed one in another shape, with who
//! it is from and which turn it belongs to.

mod agents;
mod amend;
mod customers;
mod errors;
mod events;
mod post;
mod sessions;
mod tags;
mod types;
mod variables;
mod view;

pub(crate) use errors::error;

use crate::openapi::Api;

/// What stands for the customer of sessions that have none.
const GUEST: &str = "guest";

pub(crate) fn api() -> Api {
    sessions::api()
        .and(events::api())
        .and(post::api())
        .and(amend::api())
        .and(customers::api())
        .and(variables::api())
        .and(agents::api())
        .and(tags::api())
}
