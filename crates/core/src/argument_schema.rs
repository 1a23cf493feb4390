//! JSON Schemas of tools' arguments.

use std::ops::Deref;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use crate::json_schema::plain_object;

/// The JSON Schema of a tool's arguments: as it was given, and as models are told. Vendors take only plain objects, so
/// any other schema is folded into one for them ([`plain_object`]). Every model call shows all of them, so each is
/// written once and kept as text beside the value.
#[derive(Debug, Clone)]
pub struct ArgumentSchema {
    value: Value,
    text: Box<RawValue>,
}

impl From<Value> for ArgumentSchema {
    fn from(value: Value) -> Self {
        let folded = plain_object(&value);
        // A value can always be written.
        let text = to_raw_value(folded.as_ref().unwrap_or(&value)).unwrap_or_default();
        ArgumentSchema { value, text }
    }
}

impl Deref for ArgumentSchema {
    type Target = Value;

    /// The schema as it was given, which arguments are checked against.
    fn deref(&self) -> &Value {
        &self.value
    }
}

impl PartialEq for ArgumentSchema {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Serialize for ArgumentSchema {
    /// Writes the schema as models are told.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}
