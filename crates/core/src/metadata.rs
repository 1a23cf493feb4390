//! What applications may note about agents, sessions and customers: a bounded object of their own.

use serde_json::{Map, Value};

/// The most keys that metadata may have.
const MAX_KEYS: usize = 64;
/// The most bytes that metadata may have as JSON.
const MAX_BYTES: usize = 64 * 1024;

/// Says what is wrong with metadata, if anything.
pub fn metadata_problem(metadata: &Map<String, Value>) -> Option<String> {
    if metadata.len() > MAX_KEYS {
        return Some(format!("has {} keys; at most {MAX_KEYS} are allowed", metadata.len()));
    }
    let bytes = Value::Object(metadata.clone()).to_string().len();
    (bytes > MAX_BYTES).then(|| format!("has {bytes} bytes as JSON; at most {MAX_BYTES} are allowed"))
}
