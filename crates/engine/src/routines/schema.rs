//! JSON Schemas of routines. A schema reaches nothing beyond itself: no network, no disk.

use jsonschema::{Draft, Validator};
use serde_json::Value;

/// A schema that can be checked against.
pub(crate) struct Schema<'a> {
    schema: &'a Value,
    validator: Validator,
}

/// Where a value breaks its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// What is wrong, for people.
    pub message: String,
    /// The place in the value: names, and numbers for places in arrays.
    pub path: Vec<Value>,
    /// The place in the schema.
    pub schema_path: Vec<Value>,
}

impl<'a> Schema<'a> {
    /// Reads a schema, and says what is wrong with it.
    pub(crate) fn compile(schema: &'a Value) -> Result<Self, String> {
        let options = jsonschema::options().with_draft(Draft::Draft202012).offline();
        let validator = options.build(schema).map_err(|error| match error.instance_path().as_str() {
            "" => format!("it is no JSON Schema (2020-12): {error}"),
            place => format!("it is no JSON Schema (2020-12) at {place}: {error}"),
        })?;
        Ok(Schema { schema, validator })
    }

    /// Checks a value.
    pub(crate) fn check(&self, value: &Value) -> Result<(), Mismatch> {
        self.validator.validate(value).map_err(|error| Mismatch {
            message: error.to_string(),
            path: path(error.instance_path().as_str(), value),
            schema_path: path(error.schema_path().as_str(), self.schema),
        })
    }
}

/// The parts of a JSON pointer. Places in arrays become numbers, names of fields stay text even if they are digits.
fn path(pointer: &str, root: &Value) -> Vec<Value> {
    let mut node = Some(root);
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    let walk = |part: String| {
        let index = node.filter(|node| node.is_array()).and_then(|_| part.parse::<usize>().ok());
        node = match index {
            Some(index) => node.and_then(|node| node.get(index)),
            None => node.and_then(|node| node.get(&part)),
        };
        index.map_or(Value::String(part), Value::from)
    };
    parts.map(walk).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_mismatch_is_placed_in_value_and_schema() {
        let schema = json!({ "type": "object", "required": ["decision"], "properties": {
            "decision": { "type": "string" }, "0": { "type": "array", "items": { "type": "integer" } },
        } });
        let schema = Schema::compile(&schema).unwrap();
        assert_eq!(schema.check(&json!({ "decision": "yes" })), Ok(()));
        let missing = schema.check(&json!({})).unwrap_err();
        assert_eq!((missing.path, missing.schema_path), (vec![], vec![json!("required")]));
        assert!(missing.message.contains("decision"), "{}", missing.message);
        let wrong = schema.check(&json!({ "decision": "yes", "0": [1, "two"] })).unwrap_err();
        assert_eq!(wrong.path, [json!("0"), json!(1)]);
        assert_eq!(wrong.schema_path, ["properties", "0", "items", "type"].map(Value::from));
    }

    #[test]
    fn a_schema_reaches_nothing_beyond_itself() {
        for reference in ["https://example.com/s.json", "file:///etc/passwd", "other.json"] {
            let schema = json!({ "$ref": reference });
            assert!(Schema::compile(&schema).is_err(), "{reference}");
        }
        let own = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "number" } } });
        assert!(Schema::compile(&own).unwrap().check(&json!("x")).is_err());
    }
}
