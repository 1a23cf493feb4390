//! Schemas of arguments as servers give them.
//!
//! Providers refuse a whole request for one schema that they do not understand, so a server that lies about its own
//! could stop every turn. What is not the shape of a schema is found here, and its tool left out.

use petasos_core::json_schema::check_bounds;
use serde_json::{Map, Value};

const MAX_BYTES: usize = 64 * 1024;
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The schema as it can be sent to a provider, or what is wrong with it.
pub(super) fn usable(schema: &Map<String, Value>) -> Result<Value, String> {
    let mut schema = schema.clone();
    schema.remove("$schema");
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), "object".into())),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "object") => {}
        Some(other) => return Err(format!("arguments must be an object, not {other}")),
    }
    if !schema.contains_key("properties") {
        schema.insert("properties".to_owned(), Map::new().into());
    }
    let schema = Value::Object(schema);
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(format!("the schema has {bytes} bytes; at most {MAX_BYTES} are allowed"));
    }
    check_bounds(&schema).map_err(|problem| problem.to_string())?;
    check(&schema)?;
    Ok(schema)
}

/// Checks the shape. The depth of the recursion is that of the schema, whose bounds were checked before.
fn check(schema: &Value) -> Result<(), String> {
    let schema = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(schema) => schema,
        other => return Err(format!("{other} is not a schema")),
    };
    for (keyword, value) in schema {
        let is_right = match (keyword.as_str(), value) {
            ("type", Value::String(kind)) => TYPES.contains(&kind.as_str()),
            ("type", Value::Array(kinds)) => {
                kinds.iter().all(|kind| kind.as_str().is_some_and(|kind| TYPES.contains(&kind)))
            }
            ("type", _) => false,
            ("required", Value::Array(names)) => names.iter().all(Value::is_string),
            ("required", _) => false,
            ("enum", value) => value.is_array(),
            ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(schemas)) => {
                schemas.values().try_for_each(check)?;
                true
            }
            ("properties" | "$defs" | "definitions" | "patternProperties", _) => false,
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().try_for_each(check)?;
                !schemas.is_empty()
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", _) => false,
            ("items" | "additionalProperties" | "not", schema) => {
                check(schema)?;
                true
            }
            ("description" | "title", value) => value.is_string(),
            _ => true,
        };
        if !is_right {
            return Err(format!("{keyword:?} in the schema cannot be {}", shortened(value)));
        }
    }
    Ok(())
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usable(schema: Value) -> Result<Value, String> {
        super::usable(schema.as_object().unwrap())
    }

    #[test]
    fn good_schemas_pass_and_get_what_providers_need() {
        let empty = json!({ "type": "object", "properties": {} });
        assert_eq!(usable(json!({})), Ok(empty.clone()));
        assert_eq!(usable(json!({ "$schema": "x", "type": "object" })), Ok(empty));
        let rich = json!({
            "type": "object",
            "properties": {
                "a": { "type": ["string", "null"], "enum": ["x", null], "description": "d" },
                "b": { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "$ref": "#/$defs/c" }] } },
            },
            "required": ["a"], "additionalProperties": false, "$defs": { "c": true },
        });
        assert_eq!(usable(rich.clone()), Ok(rich));
    }

    #[test]
    fn lies_are_found() {
        let nested = (0..40).fold(json!({}), |inner, _| json!({ "properties": { "a": inner } }));
        for schema in [
            json!({ "type": "string" }),
            json!({ "type": 7 }),
            json!({ "properties": [] }),
            json!({ "properties": { "a": { "type": "text" } } }),
            json!({ "properties": { "a": "string" } }),
            json!({ "required": "a" }),
            json!({ "required": [1] }),
            json!({ "properties": { "a": { "anyOf": [] } } }),
            json!({ "properties": { "a": { "items": 3 } } }),
            json!({ "description": "d".repeat(100_000) }),
            nested,
            json!({ "allOf": [{ "$ref": "#" }] }),
        ] {
            assert!(usable(schema.clone()).is_err(), "{schema}");
        }
    }
}
