//! Which fields the bodies of requests may have, and which fields of a body mean nothing.
//!
//! The known fields of a route are those of the schema that `/openapi.json` shows for it, so the two cannot differ.
//! Protocols of other vendors stay tolerant: only the routes of our own surfaces are checked.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use axum::extract::MatchedPath;
use axum::http::Request;
use petasos_core::nearest::meant;
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value};

use crate::openapi::{Operation, SchemaOf, body_generator};

/// Spellings that definitions of tools take besides those that they are described with.
const ALIASES: [(&str, &str); 4] = [
    ("default_config", "defaultConfig"),
    ("input_schema", "inputSchema"),
    ("mcp_server_name", "mcpServerName"),
    ("permission_policy", "permissionPolicy"),
];

/// The known fields of all routes that are checked, by path.
pub(crate) struct KnownFields(HashMap<&'static str, Vec<RouteFields>>);

impl KnownFields {
    pub(crate) fn new(operations: &[Operation]) -> Self {
        let mut routes: HashMap<_, Vec<RouteFields>> = HashMap::new();
        for operation in operations.iter().filter(|operation| operation.is_checked()) {
            if let Some(schema_of) = operation.json_body() {
                let route = RouteFields { method: operation.method(), schema_of, body: OnceLock::new() };
                routes.entry(operation.path()).or_default().push(route);
            }
        }
        KnownFields(routes)
    }

    /// The fields of the body of a request; none if anything may be in it.
    pub(crate) fn of<B>(&self, request: &Request<B>) -> Option<&BodyFields> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let method = request.method().as_str();
        let route = self.0.get(path)?.iter().find(|route| route.method.eq_ignore_ascii_case(method))?;
        Some(route.body.get_or_init(|| BodyFields::new(route.schema_of)))
    }
}

/// The fields of one route, worked out when it is first used.
struct RouteFields {
    method: &'static str,
    schema_of: SchemaOf,
    body: OnceLock<BodyFields>,
}

/// The fields that a body may have, at every depth.
pub(crate) struct BodyFields {
    root: Value,
    definitions: Map<String, Value>,
}

/// A field that means nothing where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownField {
    /// Where it is, for example `events[0].colour`.
    pub(crate) path: String,
    /// The known field that is most like it, for the first one that is found.
    pub(crate) nearest: Option<String>,
}

/// The most fields that are named. The others are taken out all the same.
const MAX_NAMED: usize = 1000;
/// The most bytes of a name that a known field could be meant by.
const MAX_NAME: usize = 100;

impl BodyFields {
    fn new(schema_of: SchemaOf) -> Self {
        let mut generator: SchemaGenerator = body_generator();
        let root = schema_of(&mut generator).to_value();
        BodyFields { root, definitions: generator.take_definitions(true) }
    }

    /// Takes the fields that mean nothing out of a body, and returns them.
    pub(crate) fn take_unknown(&self, body: &mut Value) -> Vec<UnknownField> {
        let mut unknown = Vec::new();
        self.visit(&[&self.root], body, "", &mut unknown);
        unknown
    }

    fn visit(&self, schemas: &[&Value], value: &mut Value, path: &str, unknown: &mut Vec<UnknownField>) {
        match value {
            _ if schemas.is_empty() => {}
            Value::Object(fields) => {
                let mut shape = ObjectShape::default();
                schemas.iter().for_each(|schema| self.collect(schema, fields, &mut shape));
                shape.take_unknown(fields, path, unknown);
                for (name, value) in fields {
                    self.visit(shape.of_field(name), value, &join(path, name), unknown);
                }
            }
            Value::Array(items) => {
                let mut of_items = Vec::new();
                schemas.iter().for_each(|schema| self.collect_items(schema, &mut of_items));
                for (index, value) in items.iter_mut().enumerate() {
                    self.visit(&of_items, value, &format!("{path}[{index}]"), unknown);
                }
            }
            _ => {}
        }
    }

    /// The schema that a reference stands for.
    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|link| link.rsplit('/').next());
        name.and_then(|name| self.definitions.get(name)).unwrap_or(schema)
    }

    /// Adds what a schema says about the fields of an object.
    fn collect<'a>(&'a self, schema: &'a Value, object: &Map<String, Value>, shape: &mut ObjectShape<'a>) {
        let schema = self.resolved(schema);
        if !allows(schema, "object") {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            shape.properties.entry(name).or_default().push(schema);
        }
        let alternatives: Vec<&Value> = ["oneOf", "anyOf"].iter().flat_map(|key| list(schema, key)).collect();
        let parts: Vec<&Value> = list(schema, "allOf").collect();
        match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(additional @ Value::Object(_)) => shape.others.push(additional),
            Some(_) => shape.is_open = true,
            None => {
                shape.is_open |= properties.is_none() && alternatives.is_empty() && parts.is_empty();
            }
        }
        parts.into_iter().for_each(|part| self.collect(part, object, shape));
        let objects = alternatives.into_iter().map(|schema| self.resolved(schema));
        let objects: Vec<&Value> = objects.filter(|schema| allows(schema, "object")).collect();
        let matches: Vec<Match> = objects.iter().map(|schema| self.matches(schema, object)).collect();
        let best = matches.iter().copied().max().unwrap_or(Match::Unclear);
        if best <= Match::Unclear && matches.contains(&Match::No) {
            // It is none of them, and the error about that is not for here.
            shape.is_open = true;
            return;
        }
        let meant = objects.into_iter().zip(matches).filter(|(_, matched)| *matched == best);
        meant.for_each(|(schema, _)| self.collect(schema, object, shape));
    }

    fn collect_items<'a>(&'a self, schema: &'a Value, items: &mut Vec<&'a Value>) {
        let schema = self.resolved(schema);
        items.extend(schema.get("items"));
        let parts = ["oneOf", "anyOf", "allOf"].iter().flat_map(|key| list(schema, key));
        parts.for_each(|part| self.collect_items(part, items));
    }

    /// How well an object fits what an alternative describes.
    fn matches(&self, schema: &Value, object: &Map<String, Value>) -> Match {
        let has = |name: &str| object.keys().any(|key| key == name || canonical(key) == name);
        let properties = schema.get("properties").and_then(Value::as_object);
        let constants = properties
            .into_iter()
            .flatten()
            .filter_map(|(name, schema)| Some(object.get(name)? == schema.get("const")?));
        let constants: Vec<bool> = constants.collect();
        let alternatives = ["oneOf", "anyOf"].iter().flat_map(|key| list(schema, key));
        let best = alternatives.map(|schema| self.matches(self.resolved(schema), object)).max();
        let is_complete = list(schema, "required").filter_map(Value::as_str).all(has);
        match best {
            _ if constants.contains(&false) => Match::No,
            Some(Match::No) => Match::No,
            Some(Match::Whole) | None if is_complete => Match::Whole,
            Some(Match::ByName) => Match::ByName,
            _ if constants.contains(&true) => Match::ByName,
            _ => Match::Unclear,
        }
    }
}

/// How well an object fits an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Match {
    /// It says that it is another.
    No,
    /// It does not say, and something is missing.
    Unclear,
    /// It says that it is this one, and something is missing.
    ByName,
    /// It has everything that is required.
    Whole,
}

/// What is known about the fields of one object.
#[derive(Default)]
struct ObjectShape<'a> {
    properties: BTreeMap<&'a str, Vec<&'a Value>>,
    /// Schemas of fields that have other names.
    others: Vec<&'a Value>,
    /// Whether it may have any fields.
    is_open: bool,
}

impl<'a> ObjectShape<'a> {
    fn of_field(&self, name: &str) -> &[&'a Value] {
        let known = self.properties.get(name).or_else(|| self.properties.get(canonical(name)));
        known.map_or(&self.others, Vec::as_slice)
    }

    fn take_unknown(&self, fields: &mut Map<String, Value>, path: &str, unknown: &mut Vec<UnknownField>) {
        if self.is_open || !self.others.is_empty() {
            return;
        }
        let is_known =
            |name: &str| self.properties.contains_key(name) || self.properties.contains_key(canonical(name));
        let known: Vec<&str> = self.properties.keys().copied().collect();
        fields.retain(|name, _| {
            let keep = is_known(name);
            if !keep && unknown.len() < MAX_NAMED {
                // Looking for a likely name takes time, and one hint is enough.
                let may_be_meant = unknown.is_empty() && name.len() <= MAX_NAME;
                let nearest = may_be_meant.then(|| meant(name, &known)).flatten().map(str::to_owned);
                unknown.push(UnknownField { path: join(path, name), nearest });
            }
            keep
        });
    }
}

/// The name that a field is described with.
fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// Whether a schema is about values of a type, among others.
fn allows(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|own| own == kind),
        _ => schema.get("const").is_none() && schema.get("enum").is_none(),
    }
}

fn list<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Thing {
        name: String,
        parts: Option<Vec<Part>>,
        free: Option<Map<String, Value>>,
        any: Option<Value>,
        by_name: Option<BTreeMap<String, Inner>>,
        flat: Option<Flat>,
    }

    #[derive(JsonSchema)]
    #[schemars(tag = "type", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is of interest")]
    enum Part {
        One { text: String },
        Two { inner: Inner },
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Inner {
        number: u32,
        #[schemars(rename = "permissionPolicy")]
        policy: Option<String>,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is of interest")]
    struct Flat {
        own: u32,
        #[schemars(flatten)]
        part: Part,
    }

    #[track_caller]
    fn check(mut body: Value, expected: &[&str]) {
        let fields = BodyFields::new(|generator| generator.subschema_for::<Thing>());
        let found = fields.take_unknown(&mut body);
        assert_eq!(found.iter().map(|field| field.path.as_str()).collect::<Vec<_>>(), expected, "{body}");
        assert_eq!(fields.take_unknown(&mut body), [], "all of them are gone: {body}");
    }

    #[test]
    fn unknown_fields_are_found_at_every_depth() {
        check(json!({ "name": "x", "nam": 1 }), &["nam"]);
        check(
            json!({ "parts": [{ "type": "one", "text": "x" }, { "type": "one", "inner": {} }] }),
            &["parts[1].inner"],
        );
        check(
            json!({ "parts": [{ "type": "two", "inner": { "number": 1, "x": 2 } }] }),
            &["parts[0].inner.x"],
        );
        check(json!({ "by_name": { "a": { "number": 1, "b": 2 } } }), &["by_name.a.b"]);
        check(json!({ "flat": { "own": 1, "type": "one", "text": "x", "inner": {} } }), &["flat.inner"]);
    }

    #[test]
    fn what_is_none_of_the_alternatives_is_left_to_the_reader() {
        check(json!({ "parts": [{ "type": "three", "x": 1 }, { "text": "x" }] }), &[]);
        check(json!({ "parts": [{ "text": "x", "x": 1 }] }), &["parts[0].x"]);
    }

    #[test]
    fn what_is_free_stays_free() {
        check(json!({ "free": { "a": { "b": 1 } }, "any": { "c": [{}] } }), &[]);
        check(json!({ "parts": null, "by_name": { "x": { "permission_policy": "y" } } }), &[]);
        for body in [json!(null), json!([1, { "a": 2 }]), json!("x")] {
            check(body, &[]);
        }
    }

    #[test]
    fn the_nearest_known_field_is_named() {
        let fields = BodyFields::new(|generator| generator.subschema_for::<Thing>());
        let unknown = fields.take_unknown(&mut json!({ "naem": 1 }));
        assert_eq!(unknown[0].nearest.as_deref(), Some("name"));
    }
}
