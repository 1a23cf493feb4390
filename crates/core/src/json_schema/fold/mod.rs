//! Folds the schema of a tool's arguments into one plain object schema.
//!
//! Vendors refuse a whole request for one tool whose schema has `anyOf`, `oneOf`, `allOf`, `not`, `enum` or a reference
//! at its root, or whose root is no object. The folded schema accepts every object that the original accepts, and as
//! little else as one list of properties can say. Nothing is checked against it: it only tells a model what to write.

mod copy;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use self::copy::Copies;
use self::shape::Shape;
use super::bounds::MAX_BYTES;
use super::index::SchemaIndex;

/// What vendors refuse at the root.
const REFUSED: [&str; 9] =
    ["anyOf", "oneOf", "allOf", "not", "enum", "const", "$ref", "$dynamicRef", "$recursiveRef"];
/// What is kept of the root as it is.
const KEPT: [&str; 3] = ["title", "description", "examples"];
/// The most characters of a description that is made here.
const MAX_DESCRIPTION: usize = 2_000;

/// The schema as one plain object schema; none if it is one already.
pub fn plain_object(schema: &Value) -> Option<Value> {
    let fields = schema.as_object();
    let is_plain = fields.is_some_and(|fields| {
        fields.get("type").is_some_and(|kind| kind == "object")
            && fields.get("properties").is_none_or(Value::is_object)
            && !REFUSED.iter().any(|keyword| fields.contains_key(*keyword))
    });
    if is_plain {
        return None;
    }
    let index = SchemaIndex::new(schema).ok();
    let folded = index.and_then(|index| Fold { copies: Copies::new(&index), index: &index }.folded());
    // A schema that passes a bound is shown without what it asks for.
    Some(folded.unwrap_or_else(|| json!({ "type": "object", "properties": {} })))
}

struct Fold<'a> {
    index: &'a SchemaIndex<'a>,
    copies: Copies<'a>,
}

impl<'a> Fold<'a> {
    /// The folded schema; none if it would pass a bound.
    fn folded(mut self) -> Option<Value> {
        let root = self.index.root();
        // A schema that accepts no object has no arguments to tell of.
        let shape = self.shape(root).unwrap_or_default();
        let mut folded = Map::new();
        for keyword in KEPT {
            if let Some(value) = root.get(keyword) {
                folded.insert(keyword.to_owned(), value.clone());
            }
        }
        if let Some(description) = self.description(root, &shape) {
            folded.insert("description".to_owned(), description.into());
        }
        folded.insert("type".to_owned(), "object".into());
        let Shape { properties, required, others } = shape;
        folded.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            folded.insert("required".to_owned(), required.into());
        }
        if !shape::is_anything(&others) {
            folded.insert("additionalProperties".to_owned(), others);
        }
        let definitions = self.copies.definitions()?;
        if !definitions.is_empty() {
            folded.insert("$defs".to_owned(), definitions.into());
        }
        let folded = Value::Object(folded);
        (folded.to_string().len() <= MAX_BYTES).then_some(folded)
    }

    /// What a schema says about objects; none if it accepts no object. The bound on how far a schema expands is also
    /// that of this recursion.
    fn shape(&mut self, schema: &'a Value) -> Option<Shape> {
        let fields = match schema {
            Value::Bool(false) => return None,
            Value::Object(fields) => fields,
            _ => return Some(Shape::default()),
        };
        if !allows_objects(fields.get("type")) {
            return None;
        }
        let mut shape = Shape::of(fields, |schema| self.copies.copied(schema));
        if let Some(target) = self.index.target(schema, "$ref") {
            shape = shape.and(self.shape(target)?);
        }
        for part in branches(schema, "allOf") {
            shape = shape.and(self.shape(part)?);
        }
        for keyword in ["anyOf", "oneOf"] {
            if !schema[keyword].is_array() {
                continue;
            }
            let forms = branches(schema, keyword).filter_map(|form| self.shape(form));
            let either = forms.collect::<Vec<_>>().into_iter().reduce(Shape::or)?;
            shape = shape.and(either);
        }
        Some(shape)
    }

    /// The description of the root, and what its forms need, which the list of properties cannot say.
    fn description(&mut self, root: &'a Value, shape: &Shape) -> Option<String> {
        let referred = self.index.target(root, "$ref");
        let mut texts: Vec<String> = Vec::new();
        let mut all = vec![root];
        all.extend(referred);
        all.extend(branches(root, "allOf"));
        for schema in all {
            texts.extend(schema["description"].as_str().map(str::to_owned));
            for keyword in ["anyOf", "oneOf"] {
                texts.extend(self.forms(branches(schema, keyword).collect(), shape));
            }
        }
        let mut said = BTreeSet::new();
        texts.retain(|text| !text.is_empty() && said.insert(text.clone()));
        let text = texts.join("\n");
        let changed = root["description"].as_str() != Some(text.as_str()) && !text.is_empty();
        changed.then(|| text.chars().take(MAX_DESCRIPTION).collect())
    }

    /// What tells the forms of `anyOf` or `oneOf` apart: their descriptions, and what each needs beyond the others.
    fn forms(&mut self, forms: Vec<&'a Value>, whole: &Shape) -> Option<String> {
        let mut lines = Vec::new();
        for form in forms {
            let Some(shape) = self.shape(form) else { continue };
            let needs: Vec<&str> = shape
                .required
                .iter()
                .filter(|name| !whole.required.contains(name))
                .map(String::as_str)
                .collect();
            let target = self.index.target(form, "$ref").unwrap_or(form);
            let said = [form, target].into_iter().find_map(|schema| {
                ["description", "title"].into_iter().find_map(|keyword| schema[keyword].as_str())
            });
            lines.push(match (said, needs.is_empty()) {
                (None, true) => "nothing more".to_owned(),
                (Some(said), true) => said.to_owned(),
                (None, false) => needs.join(", "),
                (Some(said), false) => format!("{} ({said})", needs.join(", ")),
            });
        }
        lines.dedup();
        (lines.len() > 1)
            .then(|| format!("Give the arguments of one of these forms: {}.", lines.join("; or ")))
    }
}

fn branches<'a>(schema: &'a Value, keyword: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    schema[keyword].as_array().into_iter().flatten()
}

/// Whether a `type` lets objects through.
fn allows_objects(kind: Option<&Value>) -> bool {
    match kind {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}
