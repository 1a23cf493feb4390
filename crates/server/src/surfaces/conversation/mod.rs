//! Conversation events: `/conversation`.
//!
//! A support product opens a session for a customer, posts messages, and follows typed events by long poll or stream.
//! Its sessions are sessions like any other; `view` is the one place that says what the log means as a conversation.

mod actions;
mod customers;
mod errors;
mod events;
mod failure;
pub(crate) mod follow;
mod patch;
pub(crate) mod requests;
mod sessions;
pub(crate) mod types;
mod view;
mod webhook;

pub(crate) use customers::delete as delete_customer;
pub(crate) use errors::{CodedError, error};
pub(crate) use failure::summary;
pub(crate) use follow::Fold;
pub(crate) use patch::Patch;
pub(crate) use sessions::{DEFAULT_AGENT, delete as delete_session};
pub(crate) use types::ConversationEvent;
pub(crate) use view::{ConversationView, place};
pub use webhook::conversation_view;

use crate::openapi::Api;

pub(crate) fn api() -> Api {
    sessions::api().and(actions::api()).and(events::api()).and(customers::api())
}
