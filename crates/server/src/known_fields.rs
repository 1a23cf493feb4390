//! Which fields the bodies of requests may have, and which fields of a body mean nothing.
//!
//! The known fields of a route are those of the schema that `/openapi.json` shows for it, so the two cannot differ.
//! Protocols of other vendors stay tolerant: only the routes of our own surfaces are checked.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::OnceLock;

use axum::extract::MatchedPath;
use axum::http::Request;
use petasos_core::key::KeyScope;
use petasos_core::nearest::meant;
use petasos_engine::Caller;
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::object_schemas::{Match, Others, Schema, Schemas, canonical};
use crate::openapi::{Operation, SchemaOf, body_generator};

/// The known fields of all routes that are checked, by path.
pub(crate) struct KnownFields {
    routes: HashMap<&'static str, Vec<RouteFields>>,
    /// The routes that read no body, by path, with the method and the scope that they need.
    without_body: HashMap<&'static str, Vec<(&'static str, KeyScope)>>,
    none: BodyFields,
}

impl KnownFields {
    pub(crate) fn new(operations: &[Operation]) -> Self {
        let mut routes: HashMap<_, Vec<RouteFields>> = HashMap::new();
        let mut without_body: HashMap<_, Vec<_>> = HashMap::new();
        for operation in operations.iter().filter(|operation| operation.is_checked()) {
            if let Some(schema_of) = operation.json_body() {
                let route = RouteFields { method: operation.method(), schema_of, body: OnceLock::new() };
                routes.entry(operation.path()).or_default().push(route);
            } else if let Some(scope) = operation.scope_without_body() {
                without_body.entry(operation.path()).or_default().push((operation.method(), scope));
            }
        }
        KnownFields { routes, without_body, none: BodyFields::none() }
    }

    /// The fields of a body that nobody would read: there are none. Where a body is read, and where the caller may not
    /// make the request, this has nothing to say.
    pub(crate) fn of_unread_body<B>(&self, request: &Request<B>, caller: &Caller) -> Option<&BodyFields> {
        let routes = self.without_body.get(request.extensions().get::<MatchedPath>()?.as_str())?;
        let method = request.method().as_str();
        let (_, scope) = routes.iter().find(|(known, _)| known.eq_ignore_ascii_case(method))?;
        caller.may(*scope).then_some(&self.none)
    }

    /// The fields of the body of a request; none if anything may be in it.
    pub(crate) fn of<B>(&self, request: &Request<B>) -> Option<&BodyFields> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        let method = request.method().as_str();
        let route = self.routes.get(path)?.iter().find(|route| route.method.eq_ignore_ascii_case(method))?;
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
pub(crate) struct BodyFields(Schemas);

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
        BodyFields(Schemas::read(&root, &generator.take_definitions(true)))
    }

    fn none() -> Self {
        let root = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        BodyFields(Schemas::read(&root, &Map::new()))
    }

    /// Takes the fields that mean nothing out of a body, and returns them.
    pub(crate) fn take_unknown(&self, body: &mut Value) -> Vec<UnknownField> {
        let mut unknown = Vec::new();
        self.visit(&[self.0.root()], body, &Place::Body, &mut unknown);
        unknown
    }

    fn visit(
        &self,
        schemas: &[&Schema],
        value: &mut Value,
        place: &Place<'_>,
        unknown: &mut Vec<UnknownField>,
    ) {
        match value {
            _ if schemas.is_empty() => {}
            Value::Object(fields) => {
                let mut shape = ObjectShape::default();
                schemas.iter().for_each(|schema| shape.add(&self.0, schema, fields));
                shape.take_unknown(fields, place, unknown);
                for (name, value) in fields {
                    if value.is_object() || value.is_array() {
                        self.visit(
                            &shape.of_field(&self.0, name),
                            value,
                            &Place::Field(place, name),
                            unknown,
                        );
                    }
                }
            }
            Value::Array(items) => {
                let mut of_items = Vec::new();
                schemas.iter().for_each(|schema| schema.collect_items(&self.0, &mut of_items));
                for (index, value) in items.iter_mut().enumerate() {
                    self.visit(&of_items, value, &Place::Item(place, index), unknown);
                }
            }
            _ => {}
        }
    }
}

/// Where in a body a value is. The text of it is only made for fields that are named.
enum Place<'a> {
    Body,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Body => Ok(()),
            Place::Field(Place::Body, name) => f.write_str(name),
            Place::Field(parent, name) => write!(f, "{parent}.{name}"),
            Place::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The schemas that describe one object: those of its parts, and of the alternatives that it is meant to be.
#[derive(Default)]
struct ObjectShape<'a> {
    schemas: Vec<&'a Schema>,
    /// Schemas of fields that have other names.
    others: Vec<&'a Schema>,
    /// Whether it may have any fields.
    is_open: bool,
}

impl<'a> ObjectShape<'a> {
    /// Adds what a schema says about the fields of an object.
    fn add(&mut self, all: &'a Schemas, schema: &'a Schema, object: &Map<String, Value>) {
        if !schema.allows_objects {
            return;
        }
        self.schemas.push(schema);
        match &schema.others {
            Others::None => {}
            Others::Any => self.is_open = true,
            Others::Like(id) => self.others.push(all.get(*id)),
        }
        all.all(&schema.parts).for_each(|part| self.add(all, part, object));
        let alternatives = all.all(&schema.alternatives).filter(|alternative| alternative.allows_objects);
        let matches: Vec<(Match, &Schema)> =
            alternatives.map(|alternative| (alternative.matches(all, object), alternative)).collect();
        let best = matches.iter().map(|(matched, _)| *matched).max().unwrap_or(Match::Unclear);
        if best <= Match::Unclear && matches.iter().any(|(matched, _)| *matched == Match::No) {
            // It is none of them, and the error about that is not for here.
            self.is_open = true;
            return;
        }
        let meant = matches.into_iter().filter(|(matched, _)| *matched == best);
        meant.for_each(|(_, alternative)| self.add(all, alternative, object));
    }

    fn of_field(&self, all: &'a Schemas, name: &str) -> Vec<&'a Schema> {
        let known = |name: &str| -> Vec<&'a Schema> {
            self.schemas
                .iter()
                .filter_map(|schema| schema.properties.get(name))
                .map(|id| all.get(*id))
                .collect()
        };
        let mut found = known(name);
        if found.is_empty() && canonical(name) != name {
            found = known(canonical(name));
        }
        if found.is_empty() { self.others.clone() } else { found }
    }

    fn knows(&self, name: &str) -> bool {
        let has = |name: &str| self.schemas.iter().any(|schema| schema.properties.contains_key(name));
        has(name) || has(canonical(name))
    }

    fn take_unknown(
        &self,
        fields: &mut Map<String, Value>,
        place: &Place<'_>,
        unknown: &mut Vec<UnknownField>,
    ) {
        if self.is_open || !self.others.is_empty() {
            return;
        }
        fields.retain(|name, _| {
            let keep = self.knows(name);
            if !keep && unknown.len() < MAX_NAMED {
                // Looking for a likely name takes time, and one hint is enough.
                let may_be_meant = unknown.is_empty() && name.len() <= MAX_NAME;
                let nearest = may_be_meant.then(|| self.nearest(name)).flatten();
                unknown.push(UnknownField { path: Place::Field(place, name).to_string(), nearest });
            }
            keep
        });
    }

    fn nearest(&self, name: &str) -> Option<String> {
        let known: BTreeSet<&str> =
            self.schemas.iter().flat_map(|schema| schema.properties.keys()).map(String::as_str).collect();
        meant(name, &Vec::from_iter(known)).map(str::to_owned)
    }
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
