//! What a schema says about objects, as far as one list of properties can say it, and how such shapes are put together.
//!
//! A shape accepts what its schema accepts and perhaps more, never less. `and` and `or` keep that.

use serde_json::{Map, Value, json};

/// Keywords that do not depend on others beside them, so that those of two schemas can stand in one.
const INDEPENDENT: [&str; 17] = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "format",
];
/// Keywords that only say something to the reader.
const ANNOTATIONS: [&str; 6] = ["title", "description", "default", "examples", "deprecated", "$comment"];

/// An object: its properties by name, those that must be there, and what all others may be.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    /// A schema; `true` for anything, `false` if there are no others.
    pub(super) others: Value,
}

impl Default for Shape {
    /// Any object.
    fn default() -> Self {
        Shape { properties: Map::new(), required: Vec::new(), others: Value::Bool(true) }
    }
}

impl Shape {
    /// What the keywords for objects of one schema say. `copy` copies a schema that it holds.
    pub(super) fn of<'a>(fields: &'a Map<String, Value>, mut copy: impl FnMut(&'a Value) -> Value) -> Self {
        let properties = fields.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties = properties.map(|(name, schema)| (name.clone(), copy(schema))).collect();
        let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
        let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
        let has_patterns =
            fields.get("patternProperties").and_then(Value::as_object).is_some_and(|named| !named.is_empty());
        let others = match fields.get("additionalProperties") {
            Some(schema) if !has_patterns => copy(schema),
            _ => Value::Bool(true),
        };
        Shape { properties, required, others }
    }

    /// Objects that both accept.
    pub(super) fn and(mut self, other: Shape) -> Shape {
        for (name, schema) in other.properties {
            let both = match self.properties.remove(&name) {
                Some(own) => both(own, schema),
                None => schema,
            };
            self.properties.insert(name, both);
        }
        for name in other.required {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
        Shape { others: both(self.others, other.others), ..self }
    }

    /// Objects that one of them accepts.
    pub(super) fn or(self, mut other: Shape) -> Shape {
        let mut properties = Map::new();
        for (name, schema) in self.properties {
            // A form that does not know the property takes what it takes of all that it does not know.
            let there = other.properties.remove(&name).unwrap_or_else(|| other.others.clone());
            properties.insert(name, either(schema, there));
        }
        for (name, schema) in other.properties {
            properties.insert(name, either(schema, self.others.clone()));
        }
        let required = self.required.into_iter().filter(|name| other.required.contains(name)).collect();
        let others = match (self.others, other.others) {
            (one, another) if is_anything(&one) || is_anything(&another) => Value::Bool(true),
            (one, another) => either(one, another),
        };
        Shape { properties, required, others }
    }
}

/// Whether a schema accepts every value.
pub(super) fn is_anything(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(fields) => {
            let is_open = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(is_anything));
            fields.iter().all(|(keyword, value)| {
                ANNOTATIONS.contains(&keyword.as_str()) || keyword == "anyOf" && is_open(value)
            })
        }
        _ => false,
    }
}

/// A schema of the values that both accept.
fn both(one: Value, other: Value) -> Value {
    match (&one, &other) {
        (Value::Object(fields), Value::Object(more)) if fit_together(fields, more) => {
            let mut together = more.clone();
            together.extend(fields.clone());
            Value::Object(together)
        }
        _ if one == other || is_anything(&other) || one == false => one,
        _ if is_anything(&one) || other == false => other,
        _ => json!({ "allOf": parts("allOf", one, other) }),
    }
}

fn fit_together(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let known = |keyword: &str| INDEPENDENT.contains(&keyword) || ANNOTATIONS.contains(&keyword);
    one.keys().chain(other.keys()).all(|keyword| known(keyword))
        && one.iter().all(|(keyword, value)| {
            ANNOTATIONS.contains(&keyword.as_str()) || other.get(keyword).is_none_or(|there| there == value)
        })
}

/// A schema of the values that one of them accepts.
fn either(one: Value, other: Value) -> Value {
    if one == other || other == false {
        return one;
    }
    if one == false {
        return other;
    }
    let [one, other] = [one, other].map(|schema| if schema == true { json!({}) } else { schema });
    if let Some(choice) = choice(&one, &other) {
        return choice;
    }
    // The first alternatives still tell a model what is expected where the last accepts anything.
    let (known, open): (Vec<Value>, Vec<Value>) = parts("anyOf", one, other)
        .into_iter()
        .partition(|part| part.as_object().is_none_or(|part| !part.is_empty()));
    let all: Vec<Value> = known.into_iter().chain(open).collect();
    match all.as_slice() {
        [only] => only.clone(),
        _ => json!({ "anyOf": all }),
    }
}

/// Two lists of values of one type as one list, as in the property that names the form.
fn choice(one: &Value, other: &Value) -> Option<Value> {
    let (values, more) = (values(one)?, values(other)?);
    if one["type"] != other["type"] {
        return None;
    }
    let mut all: Vec<Value> = values;
    all.extend(more.into_iter().filter(|value| !values_contain(one, value)));
    let mut choice = Map::new();
    if let Some(kind) = one.get("type") {
        choice.insert("type".to_owned(), kind.clone());
    }
    let texts = [one, other].map(|schema| schema["description"].as_str());
    let description = match texts {
        [Some(text), Some(more)] if text != more => Some(format!("{text} / {more}")),
        [text, more] => text.or(more).map(str::to_owned),
    };
    choice.extend(description.map(|text| ("description".to_owned(), text.into())));
    choice.insert("enum".to_owned(), all.into());
    Some(Value::Object(choice))
}

/// The values that a schema lists, if it says nothing else but their type.
fn values(schema: &Value) -> Option<Vec<Value>> {
    let fields = schema.as_object()?;
    let known = ["type", "const", "enum", "title", "description", "default"];
    if !fields.keys().all(|keyword| known.contains(&keyword.as_str())) {
        return None;
    }
    match (fields.get("const"), fields.get("enum")) {
        (Some(value), None) => Some(vec![value.clone()]),
        (None, Some(Value::Array(values))) => Some(values.clone()),
        _ => None,
    }
}

fn values_contain(schema: &Value, value: &Value) -> bool {
    values(schema).is_some_and(|values| values.contains(value))
}

/// The parts of `allOf` or `anyOf` of two schemas, without doubles. A schema that has nothing but that keyword is its parts.
fn parts(keyword: &str, one: Value, other: Value) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for schema in [one, other] {
        let own = schema.as_object().filter(|fields| fields.len() == 1);
        let own = own.and_then(|fields| fields.get(keyword)).and_then(Value::as_array).cloned();
        for part in own.unwrap_or_else(|| vec![schema]) {
            if !all.contains(&part) {
                all.push(part);
            }
        }
    }
    all
}
