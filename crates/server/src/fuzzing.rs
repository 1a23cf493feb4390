//! What the fuzzers of `fuzz/` need to reach. No part of the product.

use petasos_core::step::UserEvent;
use serde_json::Value;

/// Reads the body of a request that sends events, or says what is wrong with it.
pub fn read_events(body: Value) -> Result<Vec<UserEvent>, String> {
    crate::surfaces::herm::read_events(body)
        .map(|submission| submission.events)
        .map_err(|problem| format!("{problem:?}"))
}
