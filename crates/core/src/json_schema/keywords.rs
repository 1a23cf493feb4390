//! Where JSON Schemas hold other schemas.

use serde_json::{Map, Value};

/// How a subschema is reached from the schema that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It is applied to the same value, so its cost adds up with that of its siblings.
    SameValue,
    /// It is applied to a part of the value: a property, an item or a property's name.
    PartOfValue,
    /// It is only kept there, for references.
    Kept,
}

enum Form {
    One,
    List,
    Named,
}

/// Every keyword that holds schemas, in any draft. `items` and `dependencies` have two forms.
const KEYWORDS: [(&str, Form, Reach); 25] = [
    ("not", Form::One, Reach::SameValue),
    ("if", Form::One, Reach::SameValue),
    ("then", Form::One, Reach::SameValue),
    ("else", Form::One, Reach::SameValue),
    ("allOf", Form::List, Reach::SameValue),
    ("anyOf", Form::List, Reach::SameValue),
    ("oneOf", Form::List, Reach::SameValue),
    ("dependentSchemas", Form::Named, Reach::SameValue),
    ("dependencies", Form::Named, Reach::SameValue),
    ("properties", Form::Named, Reach::PartOfValue),
    ("patternProperties", Form::Named, Reach::PartOfValue),
    ("additionalProperties", Form::One, Reach::PartOfValue),
    ("propertyNames", Form::One, Reach::PartOfValue),
    ("unevaluatedProperties", Form::One, Reach::PartOfValue),
    ("prefixItems", Form::List, Reach::PartOfValue),
    ("items", Form::One, Reach::PartOfValue),
    ("items", Form::List, Reach::PartOfValue),
    ("additionalItems", Form::One, Reach::PartOfValue),
    ("contains", Form::One, Reach::PartOfValue),
    ("unevaluatedItems", Form::One, Reach::PartOfValue),
    ("extends", Form::One, Reach::SameValue),
    ("extends", Form::List, Reach::SameValue),
    ("contentSchema", Form::One, Reach::Kept),
    ("$defs", Form::Named, Reach::Kept),
    ("definitions", Form::Named, Reach::Kept),
];

/// The keywords that apply another schema by its name.
pub(super) const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Calls `visit` with each schema that `schema` holds, how it is reached, and its place below `schema`.
pub(super) fn for_each_subschema<'a>(
    schema: &'a Map<String, Value>,
    mut visit: impl FnMut(&'a Value, Reach, String),
) {
    for (keyword, form, reach) in &KEYWORDS {
        match (schema.get(*keyword), form) {
            (Some(one @ (Value::Object(_) | Value::Bool(_))), Form::One) => {
                visit(one, *reach, format!("/{keyword}"));
            }
            (Some(Value::Array(list)), Form::List) => {
                for (index, one) in list.iter().enumerate() {
                    visit(one, *reach, format!("/{keyword}/{index}"));
                }
            }
            (Some(Value::Object(named)), Form::Named) => {
                for (name, one) in named {
                    visit(one, *reach, format!("/{keyword}/{}", escape(name)));
                }
            }
            _ => {}
        }
    }
}

/// A copy of those keywords of a schema that are `wanted`, with what `copy` makes of each schema that they hold.
pub(super) fn with_subschemas<'a>(
    schema: &'a Map<String, Value>,
    wanted: impl Fn(&str) -> bool,
    mut copy: impl FnMut(&'a Value) -> Value,
) -> Map<String, Value> {
    let mut copied = Map::new();
    for (keyword, value) in schema.iter().filter(|(keyword, _)| wanted(keyword)) {
        let holds =
            |form: fn(&Form) -> bool| KEYWORDS.iter().any(|(name, its, _)| name == keyword && form(its));
        let value = match value {
            Value::Object(named) if holds(|form| matches!(form, Form::Named)) => {
                named.iter().map(|(name, one)| (name.clone(), copy(one))).collect()
            }
            Value::Array(list) if holds(|form| matches!(form, Form::List)) => {
                list.iter().map(&mut copy).collect()
            }
            one if holds(|form| matches!(form, Form::One)) => copy(one),
            other => other.clone(),
        };
        copied.insert(keyword.clone(), value);
    }
    copied
}

/// A name as a part of a JSON pointer.
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
