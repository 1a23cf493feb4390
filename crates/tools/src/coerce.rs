//! Makes arguments fit their schema where there is no doubt about what was meant: models write `"42"` for 42.

use serde_json::{Map, Number, Value};

/// Changes what has the wrong type into the right one, wherever that loses nothing.
pub fn coerce(schema: &Value, input: &mut Map<String, Value>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    // A model that has nothing to say about an argument may say null.
    input.retain(|name, value| !value.is_null() || properties.get(name).is_none_or(allows_null));
    for (name, schema) in properties {
        if let Some(value) = input.get_mut(name) {
            coerce_value(schema, value);
        }
    }
}

fn coerce_value(schema: &Value, value: &mut Value) {
    match (schema["type"].as_str(), &mut *value) {
        (Some("object"), Value::Object(fields)) => coerce(schema, fields),
        (Some("array"), Value::Array(items)) => {
            items.iter_mut().for_each(|item| coerce_value(&schema["items"], item));
        }
        (Some(wanted), Value::String(text)) => {
            if let Some(meant) = read(wanted, text) {
                *value = meant;
            }
        }
        (Some("string"), Value::Number(_) | Value::Bool(_)) => *value = Value::String(value.to_string()),
        (Some("integer"), Value::Number(number)) => {
            if let Some(whole) = whole(number) {
                *value = Value::Number(whole);
            }
        }
        _ => {}
    }
}

fn read(wanted: &str, text: &str) -> Option<Value> {
    let trimmed = text.trim();
    match wanted {
        "integer" => trimmed
            .parse::<i64>()
            .ok()
            .map(Value::from)
            .or_else(|| whole(&trimmed.parse().ok()?).map(Value::Number)),
        "number" => trimmed.parse::<Number>().ok().map(Value::Number),
        "boolean" => match trimmed.to_ascii_lowercase().as_str() {
            "true" | "yes" | "1" => Some(Value::Bool(true)),
            "false" | "no" | "0" => Some(Value::Bool(false)),
            _ => None,
        },
        "array" => serde_json::from_str(trimmed).ok().filter(Value::is_array),
        "object" => serde_json::from_str(trimmed).ok().filter(Value::is_object),
        _ => None,
    }
}

/// A number without a fraction, as an integer.
fn whole(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
    number.is_f64().then(|| Number::from(float as i64))
}

fn allows_null(schema: &Value) -> bool {
    schema["type"] == "null" || schema["type"].as_array().is_some_and(|types| types.contains(&"null".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn coerced(value: Value) -> Value {
        let schema = json!({ "type": "object", "properties": {
            "count": { "type": "integer" },
            "share": { "type": "number" },
            "deep": { "type": "boolean" },
            "text": { "type": "string" },
            "items": { "type": "array", "items": { "type": "integer" } },
            "inner": { "type": "object", "properties": { "count": { "type": "integer" } } },
        } });
        let Value::Object(mut input) = value else { panic!("an object") };
        coerce(&schema, &mut input);
        Value::Object(input)
    }

    #[test]
    fn what_was_meant_is_clear() {
        assert_eq!(coerced(json!({ "count": "42", "deep": "true" })), json!({ "count": 42, "deep": true }));
        assert_eq!(coerced(json!({ "count": 5.0, "share": "0.5" })), json!({ "count": 5, "share": 0.5 }));
        assert_eq!(coerced(json!({ "text": 7, "deep": "False" })), json!({ "text": "7", "deep": false }));
        assert_eq!(coerced(json!({ "items": "[1, \"2\"]" })), json!({ "items": [1, "2"] }));
        assert_eq!(coerced(json!({ "items": ["1"] })), json!({ "items": [1] }));
        assert_eq!(coerced(json!({ "inner": { "count": "1" } })), json!({ "inner": { "count": 1 } }));
        assert_eq!(coerced(json!({ "count": null })), json!({}));
    }

    #[test]
    fn what_is_not_clear_stays() {
        for value in [json!({ "count": "many" }), json!({ "deep": "maybe" }), json!({ "unknown": "1" })] {
            assert_eq!(coerced(value.clone()), value);
        }
        assert_eq!(coerced(json!({ "count": 1.5 })), json!({ "count": 1.5 }));
    }
}
