//! Finds every subschema of a schema and what its references point at.
//!
//! A reference reaches nothing beyond its own schema. `$dynamicRef` is resolved like `$ref`, which is what it means as
//! long as no two schemas have the same `$dynamicAnchor`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::SchemaProblem;
use super::bounds::{self, MAX_REFERENCES, MAX_SUBSCHEMAS};
use super::expansion;
use super::keywords::{REFERENCES, Reach, for_each_subschema};

/// A schema within its bounds, with the places of its subschemas and the targets of its references.
#[derive(Debug)]
pub struct SchemaIndex<'a> {
    root: &'a Value,
    pub(super) subschemas: Vec<Subschema<'a>>,
    numbers: HashMap<usize, usize>,
    /// The numbers of schemas with an `$id`, by that id as it is written and as it is relative to the root's.
    resources: HashMap<String, usize>,
    /// The numbers of schemas with an anchor, by the resource that they are in and their anchor.
    anchors: HashMap<(usize, &'a str), usize>,
    dynamic_anchors: HashSet<&'a str>,
    broken: Option<SchemaProblem>,
}

/// One schema within a schema.
#[derive(Debug)]
pub(super) struct Subschema<'a> {
    pub(super) value: &'a Value,
    /// A JSON pointer from the root.
    pub(super) place: String,
    /// The numbers of the schemas that are applied to the same value.
    pub(super) same_value: Vec<usize>,
    /// The numbers of the targets of its references, by keyword.
    targets: Vec<(&'static str, usize)>,
    /// The number of the schema whose `$id` its references are relative to.
    resource: usize,
}

impl<'a> SchemaIndex<'a> {
    /// Reads a schema, and refuses one that passes a bound.
    pub fn new(root: &'a Value) -> Result<Self, SchemaProblem> {
        bounds::check_text(root)?;
        let mut index = SchemaIndex {
            root,
            subschemas: Vec::new(),
            numbers: HashMap::new(),
            resources: HashMap::new(),
            anchors: HashMap::new(),
            dynamic_anchors: HashSet::new(),
            broken: None,
        };
        index.add(root, String::new(), 0)?;
        index.resolve_references()?;
        expansion::check(&index)?;
        Ok(index)
    }

    /// The schema itself.
    pub fn root(&self) -> &'a Value {
        self.root
    }

    /// What is wrong with a reference, if one points at nothing within the schema or is truly dynamic.
    pub fn broken_reference(&self) -> Option<&SchemaProblem> {
        self.broken.as_ref()
    }

    /// The schema that a reference keyword of `schema` applies.
    pub fn target(&self, schema: &'a Value, keyword: &str) -> Option<&'a Value> {
        let subschema = &self.subschemas[*self.numbers.get(&address(schema))?];
        let target = subschema.targets.iter().find(|(name, _)| *name == keyword)?;
        Some(self.subschemas[target.1].value)
    }

    /// The JSON pointer of a subschema.
    pub fn place(&self, schema: &Value) -> &str {
        let number = self.numbers.get(&address(schema));
        number.map_or("", |number| self.subschemas[*number].place.as_str())
    }

    /// Whether a keyword occurs in any subschema.
    pub fn uses(&self, keyword: &str) -> bool {
        self.subschemas.iter().any(|subschema| subschema.value.get(keyword).is_some())
    }

    /// The regular expressions of the schema, with the places of the subschemas that have them.
    pub fn patterns(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.subschemas.iter().flat_map(|subschema| {
            let named = subschema.value["patternProperties"].as_object();
            let named = named.into_iter().flat_map(|named| named.keys().map(String::as_str));
            let all = subschema.value["pattern"].as_str().into_iter().chain(named);
            all.map(|pattern| (subschema.place.as_str(), pattern))
        })
    }

    /// Adds a schema and all that it holds. The depth of the recursion is that of the schema, which is bounded.
    fn add(&mut self, value: &'a Value, place: String, resource: usize) -> Result<usize, SchemaProblem> {
        if let Some(known) = self.numbers.get(&address(value)) {
            return Ok(*known);
        }
        let number = self.subschemas.len();
        if number >= MAX_SUBSCHEMAS {
            let problem = format!("the schema has more than {MAX_SUBSCHEMAS} subschemas");
            return Err(SchemaProblem::new(place, problem));
        }
        let resource = if value["$id"].is_string() { number } else { resource };
        self.numbers.insert(address(value), number);
        let subschema =
            Subschema { value, place: place.clone(), same_value: vec![], targets: vec![], resource };
        self.subschemas.push(subschema);
        let Value::Object(fields) = value else { return Ok(number) };
        self.add_names(number);
        let mut held = Vec::new();
        for_each_subschema(fields, |schema, reach, below| held.push((schema, reach, below)));
        for (schema, reach, below) in held {
            let child = self.add(schema, format!("{place}{below}"), resource)?;
            if reach == Reach::SameValue {
                self.subschemas[number].same_value.push(child);
            }
        }
        Ok(number)
    }

    /// Resolves references until no target brings new ones: a JSON pointer may lead to a place where no keyword puts a
    /// schema.
    fn resolve_references(&mut self) -> Result<(), SchemaProblem> {
        let (mut number, mut references, mut patterns) = (0, 0, 0);
        while number < self.subschemas.len() {
            let Subschema { value, ref place, .. } = self.subschemas[number];
            let place = place.clone();
            let Value::Object(fields) = value else {
                number += 1;
                continue;
            };
            bounds::check_keywords(fields, &place, &mut patterns)?;
            for keyword in REFERENCES {
                let Some(reference) = fields.get(keyword).and_then(Value::as_str) else { continue };
                references += 1;
                if references > MAX_REFERENCES {
                    let problem = format!("the schema has more than {MAX_REFERENCES} references");
                    return Err(SchemaProblem::new(place, problem));
                }
                match self.resolve(number, reference)? {
                    Some(target) => {
                        self.subschemas[number].targets.push((keyword, target));
                        self.subschemas[number].same_value.push(target);
                    }
                    None => {
                        let problem = format!("{keyword} {reference:?} names nothing in this schema");
                        self.broken.get_or_insert(SchemaProblem::new(&place, problem));
                    }
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// Notes the names under which references find a subschema.
    fn add_names(&mut self, number: usize) {
        let Subschema { value, resource, .. } = self.subschemas[number];
        if let Some(id) = value["$id"].as_str() {
            let id = id.trim_end_matches('#');
            for name in [id.to_owned(), join(self.id(0), id)] {
                self.resources.entry(name).or_insert(number);
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(anchor) = value[keyword].as_str() {
                self.anchors.entry((resource, anchor)).or_insert(number);
            }
        }
        if let Some(anchor) = value["$dynamicAnchor"].as_str()
            && !self.dynamic_anchors.insert(anchor)
        {
            let problem = format!("$dynamicAnchor {anchor:?} may be defined only once");
            self.broken.get_or_insert(SchemaProblem::new(&self.subschemas[number].place, problem));
        }
    }

    /// The number of the schema that a reference of subschema `from` names.
    fn resolve(&mut self, from: usize, reference: &str) -> Result<Option<usize>, SchemaProblem> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let own = self.subschemas[from].resource;
        let resource = if document.is_empty() { Some(own) } else { self.resource(own, document) };
        let Some(resource) = resource else { return Ok(None) };
        let Some(fragment) = percent_decode(fragment) else { return Ok(None) };
        if fragment.is_empty() || fragment.starts_with('/') {
            let Subschema { value, ref place, .. } = self.subschemas[resource];
            let (place, target) = (format!("{place}{fragment}"), value.pointer(&fragment));
            return target.map(|target| self.add(target, place, resource)).transpose();
        }
        Ok(self.anchors.get(&(resource, fragment.as_str())).copied())
    }

    /// The number of the schema whose `$id` is meant by the part of a reference before `#`.
    fn resource(&self, from: usize, document: &str) -> Option<usize> {
        let joined = join(self.id(from), document);
        self.resources.get(&joined).or_else(|| self.resources.get(document)).copied()
    }

    fn id(&self, number: usize) -> &'a str {
        self.subschemas[number].value["$id"].as_str().unwrap_or_default().trim_end_matches('#')
    }
}

/// A relative reference put together with the URI that it is relative to.
fn join(base: &str, reference: &str) -> String {
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|first| first.contains(':'));
    let authority = base.find("://").map(|start| start + 3);
    let path = authority.and_then(|start| base[start..].find('/').map(|slash| start + slash));
    match (has_scheme, path) {
        (true, _) | (_, None) => reference.to_owned(),
        (false, Some(path)) if reference.starts_with('/') => format!("{}{reference}", &base[..path]),
        (false, Some(_)) => format!("{}{reference}", &base[..=base.rfind('/').unwrap_or(0)]),
    }
}

/// The text of a URI's fragment; none if it is no text.
fn percent_decode(fragment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// Subschemas are told apart by where they lie in memory: the schema is borrowed as long as its index lives.
fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema) as usize
}
