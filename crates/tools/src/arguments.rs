//! Reads the arguments of a call.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The arguments as a tool's own type, or what is wrong with them.
pub(crate) fn parse<T: DeserializeOwned>(input: &Map<String, Value>) -> Result<T, String> {
    T::deserialize(Value::Object(input.clone()))
        .map_err(|error| format!("The arguments do not fit: {error}."))
}
