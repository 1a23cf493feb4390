//! Conversation events: `/conversation`.
//!
//! A support product opens a session for a customer, posts messages, and follows typed events by long poll or stream.
//! Its sessions are sessions like any other; `view` is the one place that says what the log means as a conversation.

mod errors;
mod events;
mod failure;
mod follow;
mod patch;
mod sessions;
mod types;
mod view;
mod webhook;

pub(crate) use errors::{CodedError, as_coded};
pub(crate) use types::ConversationEvent;
pub use webhook::conversation_view;

use crate::openapi::Api;

pub(crate) fn api() -> Api {
    sessions::api().and(events::api())
}
