//! Routines and their runs: `/routines` and `/runs`.

mod callback;
mod definitions;
mod runs;
mod trigger;

use jiff::Timestamp;

pub(crate) use self::callback::CallbackPayload;
pub use self::callback::callback_body;
pub(crate) use self::runs::Run;
pub(crate) use self::trigger::TriggerRequest;
use crate::openapi::Api;

pub(crate) fn api() -> Api {
    definitions::api().and(trigger::api()).and(runs::api())
}

/// A time as runs and callbacks show it.
fn shown(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}
