//! Bounds of a schema's text: bytes, nesting, and the length of its lists and patterns.

use std::io;

use serde_json::{Map, Value};

use super::SchemaProblem;

/// The most bytes that a schema may have, written as JSON.
pub const MAX_BYTES: usize = 256 * 1024;
/// How deep objects and arrays of a schema may be nested.
pub const MAX_DEPTH: usize = 64;
/// The most schemas within a schema.
pub const MAX_SUBSCHEMAS: usize = 5_000;
/// The most references (`$ref` and `$dynamicRef`) of a schema.
pub const MAX_REFERENCES: usize = 1_000;
/// To how many checks of one value a schema may expand when its references and combinations are written out.
pub const MAX_EXPANSION: u64 = 10_000;
/// The most entries of an `enum` or a `required`.
pub const MAX_LIST: usize = 10_000;
/// The most regular expressions of a schema.
pub const MAX_PATTERNS: usize = 50;
/// The most bytes of a regular expression.
pub const MAX_PATTERN_BYTES: usize = 1_024;

/// Checks what can be told without knowing where subschemas are. Must come first: it bounds the recursion of the rest.
pub(super) fn check_text(schema: &Value) -> Result<(), SchemaProblem> {
    check_depth(schema, 1)?;
    let mut bytes = ByteCounter(0);
    // A value can always be written, and a counter takes everything.
    let _ = serde_json::to_writer(&mut bytes, schema);
    if bytes.0 > MAX_BYTES {
        let problem = format!("the schema has {} bytes; at most {MAX_BYTES} are allowed", bytes.0);
        return Err(SchemaProblem::new("", problem));
    }
    Ok(())
}

fn check_depth(value: &Value, depth: usize) -> Result<(), SchemaProblem> {
    if depth > MAX_DEPTH {
        let problem = format!("the schema is nested more than {MAX_DEPTH} levels deep");
        return Err(SchemaProblem::new("", problem));
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_depth(item, depth + 1)),
        Value::Object(fields) => fields.values().try_for_each(|field| check_depth(field, depth + 1)),
        _ => Ok(()),
    }
}

/// Checks the lists and patterns of one subschema, and counts its patterns.
pub(super) fn check_keywords(
    schema: &Map<String, Value>,
    place: &str,
    patterns: &mut usize,
) -> Result<(), SchemaProblem> {
    for keyword in ["enum", "required"] {
        let count = schema.get(keyword).and_then(Value::as_array).map_or(0, Vec::len);
        if count > MAX_LIST {
            let problem = format!("{keyword} has {count} entries; at most {MAX_LIST} are allowed");
            return Err(SchemaProblem::new(format!("{place}/{keyword}"), problem));
        }
    }
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(|named| named.keys().map(String::as_str));
    for pattern in schema.get("pattern").and_then(Value::as_str).into_iter().chain(named) {
        *patterns += 1;
        if pattern.len() > MAX_PATTERN_BYTES {
            let problem =
                format!("a pattern has {} bytes; at most {MAX_PATTERN_BYTES} are allowed", pattern.len());
            return Err(SchemaProblem::new(place, problem));
        }
        if *patterns > MAX_PATTERNS {
            let problem = format!("the schema has more than {MAX_PATTERNS} patterns");
            return Err(SchemaProblem::new(place, problem));
        }
    }
    Ok(())
}

struct ByteCounter(usize);

impl io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
