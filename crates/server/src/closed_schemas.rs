//! Says in the description that bodies have no other fields than those that it lists, where that is so.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Whether the fields of an object are all in one schema. Those of an alternative are not if its parent has some too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// Closes the schema of a body, and the definitions that it refers to.
pub(crate) fn close_body(schema: &mut Value, definitions: &mut Map<String, Value>) {
    close(schema, Whole::Yes, definitions, &mut BTreeSet::new());
}

fn close(
    schema: &mut Value,
    whole: Whole,
    definitions: &mut Map<String, Value>,
    done: &mut BTreeSet<String>,
) {
    let Value::Object(fields) = schema else { return };
    let link = fields.get("$ref").and_then(Value::as_str).and_then(|link| link.rsplit('/').next());
    if let Some(name) = link.map(str::to_owned)
        && done.insert(name.clone())
        && let Some(mut definition) = definitions.get(&name).cloned()
    {
        close(&mut definition, whole, definitions, done);
        definitions.insert(name, definition);
    }
    let is_composed = ["oneOf", "anyOf", "allOf"].iter().any(|key| fields.contains_key(*key));
    let has_properties = fields.contains_key("properties");
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(|schema| close(schema, Whole::Yes, definitions, done));
    }
    for key in ["items", "additionalProperties"] {
        fields.get_mut(key).into_iter().for_each(|schema| close(schema, Whole::Yes, definitions, done));
    }
    let of_parts = if has_properties || fields.contains_key("allOf") { Whole::No } else { whole };
    for key in ["oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(parts)) = fields.get_mut(key) {
            parts.iter_mut().for_each(|part| close(part, of_parts, definitions, done));
        }
    }
    if has_properties && !is_composed && whole == Whole::Yes && !fields.contains_key("additionalProperties") {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
}
