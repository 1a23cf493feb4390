//! Changes of maps: what to set, and what to take away.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A change of a map.
#[derive(Deserialize, JsonSchema, Default)]
#[schemars(rename = "SetAndUnset")]
pub(crate) struct Patch {
    /// Keys to set.
    pub(crate) set: Option<Map<String, Value>>,
    /// Keys to take away.
    pub(crate) unset: Option<Vec<String>>,
}

impl Patch {
    /// The same change as a map to merge, in which `null` takes a key away.
    pub(crate) fn into_merge(self) -> Map<String, Value> {
        let unset = self.unset.into_iter().flatten().map(|key| (key, Value::Null));
        unset.chain(self.set.into_iter().flatten()).collect()
    }
}
