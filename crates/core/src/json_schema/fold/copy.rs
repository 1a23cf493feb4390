//! Copies parts of a schema to another place without breaking their references.
//!
//! A reference is the place of its target, and folding moves schemas. So each target that a copied part refers to is
//! copied too, once, to `$defs`.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};

use super::super::bounds::MAX_BYTES;
use super::super::index::SchemaIndex;
use super::super::keywords::{REFERENCES, with_subschemas};

/// What only has a meaning at the place that a copy is taken from.
const OF_THE_PLACE: [&str; 8] = [
    "$schema",
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$vocabulary",
    "$defs",
    "definitions",
];

/// Copies of a schema's parts, and the definitions that they need.
pub(super) struct Copies<'a> {
    index: &'a SchemaIndex<'a>,
    /// The names of targets, by their place in the original.
    names: BTreeMap<String, String>,
    /// Targets that have a name and no copy yet.
    waiting: VecDeque<(String, &'a Value)>,
}

impl<'a> Copies<'a> {
    pub(super) fn new(index: &'a SchemaIndex<'a>) -> Self {
        Copies { index, names: BTreeMap::new(), waiting: VecDeque::new() }
    }

    /// A copy of a part. The depth of the recursion is that of the schema, which is bounded.
    pub(super) fn copied(&mut self, schema: &'a Value) -> Value {
        let Value::Object(fields) = schema else { return schema.clone() };
        let mut copy =
            with_subschemas(fields, |keyword| !OF_THE_PLACE.contains(&keyword), |part| self.copied(part));
        if !REFERENCES.iter().any(|keyword| copy.contains_key(*keyword)) {
            return Value::Object(copy);
        }
        let target = self.index.target(schema, "$ref");
        let only_one = !REFERENCES.iter().skip(1).any(|keyword| copy.contains_key(*keyword));
        match target.filter(|_| only_one) {
            Some(target) => {
                let name = self.name(target);
                copy.insert("$ref".to_owned(), format!("#/$defs/{name}").into());
            }
            // What cannot be looked up here may be anything.
            None => copy.retain(|keyword, _| keyword == "description" || keyword == "title"),
        }
        Value::Object(copy)
    }

    /// The name of a target under `$defs`.
    fn name(&mut self, target: &'a Value) -> String {
        let place = self.index.place(target).to_owned();
        if let Some(name) = self.names.get(&place) {
            return name.clone();
        }
        let own = place.strip_prefix("/$defs/").or_else(|| place.strip_prefix("/definitions/"));
        let is_plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let mut name = own.filter(is_plain).unwrap_or("part").to_owned();
        if name == "part" || self.names.values().any(|taken| *taken == name) {
            name = format!("part-{}", self.names.len() + 1);
        }
        self.names.insert(place, name.clone());
        self.waiting.push_back((name.clone(), target));
        name
    }

    /// The definitions that all copies need; none if they would pass the bound of a schema's bytes.
    pub(super) fn definitions(mut self) -> Option<Map<String, Value>> {
        let (mut definitions, mut bytes) = (Map::new(), 0);
        while let Some((name, target)) = self.waiting.pop_front() {
            let copy = self.copied(target);
            bytes += copy.to_string().len();
            if bytes > MAX_BYTES {
                return None;
            }
            definitions.insert(name, copy);
        }
        Some(definitions)
    }
}
