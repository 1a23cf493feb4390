//! A value that fits a JSON Schema, as simple as can be: what the demo model hands in where a schema is asked for.

use std::cell::Cell;

use serde_json::{Map, Value, json};

/// How deep schemas are followed; what is deeper is null.
const DEEPEST: usize = 16;
/// The most items and characters that are made up because a schema asks for so many.
const MOST: u64 = 1_000;
/// About how many bytes a value may have; what comes after them is null. Lists in lists multiply.
const MAX_BYTES: usize = 256 * 1024;
/// What a value takes besides its text.
const BYTES_OF_A_VALUE: usize = 32;

/// A value for a schema. Conditions that a look at one keyword cannot meet (patterns, `not`, sums of several) are not
/// met.
pub(super) fn sample(schema: &Value) -> Value {
    Sampler { root: schema, left: Cell::new(MAX_BYTES) }.value(schema, 0)
}

struct Sampler<'a> {
    /// Where references within the schema begin.
    root: &'a Value,
    /// How many bytes more may be made up.
    left: Cell<usize>,
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        let Some(fields) = schema.as_object().filter(|_| depth < DEEPEST && self.spend(BYTES_OF_A_VALUE))
        else {
            return Value::Null;
        };
        let given = ["const", "default"].iter().find_map(|name| fields.get(*name));
        let listed = ["enum", "examples"].iter().find_map(|name| fields.get(*name)?.get(0));
        if let Some(value) = given.or(listed) {
            return if self.spend(value.to_string().len()) { value.clone() } else { Value::Null };
        }
        if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or(Value::Null, |found| self.value(found, depth + 1));
        }
        if let Some(first) = ["anyOf", "oneOf"].iter().find_map(|name| fields.get(*name)?.get(0)) {
            return self.value(first, depth + 1);
        }
        if let Some(parts) = fields.get("allOf").and_then(Value::as_array) {
            return self.of_all(fields, parts, depth);
        }
        self.of_type(fields, depth)
    }

    /// Takes so many bytes from those that are left. False if there are not as many.
    fn spend(&self, bytes: usize) -> bool {
        let rest = self.left.get().checked_sub(bytes);
        self.left.set(rest.unwrap_or_default());
        rest.is_some()
    }

    /// Objects that fit several schemas have what each of them asks for.
    fn of_all(&self, fields: &Map<String, Value>, parts: &[Value], depth: usize) -> Value {
        let mut whole = match self.of_type(fields, depth) {
            Value::Object(whole) => whole,
            _ => Map::new(),
        };
        for part in parts {
            match self.value(part, depth + 1) {
                Value::Object(part) => whole.extend(part),
                other => return other,
            }
        }
        Value::Object(whole)
    }

    fn of_type(&self, fields: &Map<String, Value>, depth: usize) -> Value {
        let name = match fields.get("type") {
            Some(Value::String(name)) => name.as_str(),
            Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or_default(),
            _ if fields.contains_key("items") => "array",
            _ => "object",
        };
        match name {
            "string" => {
                let text = text(fields);
                let length = text.as_str().map_or(0, str::len);
                if self.spend(length) { text } else { Value::Null }
            }
            "integer" | "number" => number(fields, name == "integer"),
            "boolean" => json!(true),
            "array" => {
                let count = at_least(fields, "minItems").min(MOST);
                let item = |_| fields.get("items").map_or(Value::Null, |items| self.value(items, depth + 1));
                (0..count).take_while(|_| self.spend(BYTES_OF_A_VALUE)).map(item).collect()
            }
            "object" => self.object(fields, depth),
            _ => Value::Null,
        }
    }

    fn object(&self, fields: &Map<String, Value>, depth: usize) -> Value {
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let property = |name: &str| {
            let schema = fields.get("properties").and_then(|properties| properties.get(name));
            (name.to_owned(), schema.map_or(json!("demo"), |schema| self.value(schema, depth + 1)))
        };
        let fits = |name: &&str| self.spend(BYTES_OF_A_VALUE + name.len());
        required.filter_map(Value::as_str).take_while(fits).map(property).collect()
    }
}

fn at_least(fields: &Map<String, Value>, name: &str) -> u64 {
    fields.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn text(fields: &Map<String, Value>) -> Value {
    let text = match fields.get("format").and_then(Value::as_str) {
        Some("date-time") => "2026-01-01T00:00:00Z",
        Some("date") => "2026-01-01",
        Some("email") => "demo@example.com",
        Some("uri") => "https://example.com/",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        _ => "demo",
    };
    let missing = at_least(fields, "minLength").min(MOST).saturating_sub(text.len() as u64);
    let most = fields.get("maxLength").and_then(Value::as_u64).unwrap_or(MOST);
    let padding = usize::try_from(missing).unwrap_or_default();
    let padded = format!("{text}{}", ".".repeat(padding));
    json!(padded.chars().take(usize::try_from(most).unwrap_or(usize::MAX)).collect::<String>())
}

/// The lowest number that is allowed, or the highest, or zero.
fn number(fields: &Map<String, Value>, whole: bool) -> Value {
    let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
    let lowest = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
    let highest = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
    let number = match (lowest, highest) {
        (Some(lowest), _) => lowest.max(0.0).min(highest.unwrap_or(f64::MAX)).max(lowest),
        (None, Some(highest)) => highest.min(0.0),
        (None, None) => 0.0,
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is cut off on purpose, at what fits")]
    let integer = number.ceil() as i64;
    if whole || number.fract() == 0.0 { json!(integer) } else { json!(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_as_simple_as_can_be() {
        for (schema, value) in [
            (json!({}), json!({})),
            (json!({ "type": "object" }), json!({})),
            (json!({ "enum": ["approved", "rejected"] }), json!("approved")),
            (json!({ "const": 3 }), json!(3)),
            (json!({ "type": "string", "minLength": 6 }), json!("demo..")),
            (json!({ "type": "string", "maxLength": 2 }), json!("de")),
            (json!({ "type": "integer", "minimum": 2 }), json!(2)),
            (json!({ "type": "integer", "exclusiveMinimum": -5 }), json!(0)),
            (json!({ "type": "number", "maximum": -0.5 }), json!(-0.5)),
            (json!({ "type": ["boolean", "null"] }), json!(true)),
            (json!({ "type": "array", "items": { "type": "null" }, "minItems": 2 }), json!([null, null])),
            (json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] }), json!(0)),
        ] {
            assert_eq!(sample(&schema), value, "{schema}");
        }
    }

    #[test]
    fn objects_have_what_is_required_of_them() {
        let schema = json!({
            "type": "object",
            "required": ["decision", "person", "other"],
            "properties": {
                "decision": { "enum": ["approved"] },
                "person": { "$ref": "#/$defs/person" },
                "unneeded": { "type": "string" },
            },
            "$defs": { "person": { "allOf": [
                { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } },
                { "required": ["age"], "properties": { "age": { "type": "integer" } } },
            ] } },
        });
        let person = json!({ "name": "demo", "age": 0 });
        assert_eq!(sample(&schema), json!({ "decision": "approved", "person": person, "other": "demo" }));
    }

    #[test]
    fn a_schema_that_never_ends_is_cut_off() {
        let schema = json!({ "required": ["next"], "properties": { "next": { "$ref": "#" } } });
        assert!(sample(&schema).to_string().len() < 1_000);
        assert!(sample(&json!({ "type": "array", "minItems": u64::MAX })).as_array().unwrap().len() <= 1_000);
        let lists = |inner: Value| {
            (0..6).fold(inner, |items, _| json!({ "type": "array", "minItems": 1_000, "items": items }))
        };
        let names: Vec<String> = (0..100).map(|number| format!("name{number}")).collect();
        for inner in [
            json!({ "type": "string", "minLength": 1_000 }),
            json!({ "const": "x".repeat(100_000) }),
            json!({ "type": "object", "required": names }),
        ] {
            assert!(sample(&lists(inner)).to_string().len() < 2 * MAX_BYTES);
        }
    }
}
