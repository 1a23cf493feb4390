//! `/openapi.json`: what the server can do, generated from the routes and types that do it.
//!
//! A route is added together with its description, so neither can exist without the other.

use axum::Router;
use axum::routing::MethodRouter;
use petasos_core::key::KeyScope;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use crate::closed_schemas::close_body;
use crate::problem::ProblemBody;
use crate::server::App;

/// Our own surfaces, whose bodies are checked; protocols of other vendors stay tolerant.
const CHECKED: [&str; 3] = ["v1", "conversation", "routines"];

/// Routes with their descriptions.
#[derive(Default)]
pub(crate) struct Api {
    router: Router<App>,
    operations: Vec<Operation>,
}

/// The description of one route.
pub(crate) struct Operation {
    id: &'static str,
    summary: &'static str,
    method: &'static str,
    path: &'static str,
    scope: KeyScope,
    security: Value,
    parameters: Vec<Value>,
    body: Option<SchemaOf>,
    body_type: &'static str,
    success: u16,
    also_ok: bool,
    answer: SchemaOf,
    content_type: &'static str,
    may_stream: bool,
    error: SchemaOf,
}

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl Operation {
    /// A route that answers with `T`.
    pub(crate) fn new<T: JsonSchema>(id: &'static str, summary: &'static str, scope: KeyScope) -> Self {
        Operation {
            id,
            summary,
            method: "get",
            path: "",
            scope,
            security: json!([{ "key": [scope.as_str()] }]),
            parameters: Vec::new(),
            body: None,
            body_type: "application/json",
            success: 200,
            also_ok: false,
            answer: |generator| generator.subschema_for::<T>(),
            content_type: "application/json",
            may_stream: false,
            error: |generator| generator.subschema_for::<ProblemBody>(),
        }
    }

    /// The route needs no key.
    pub(crate) fn open(mut self) -> Self {
        self.security = json!([]);
        self
    }

    /// The route needs a key, whatever its scopes.
    pub(crate) fn any_key(mut self) -> Self {
        self.security = json!([{ "key": [] }]);
        self
    }

    /// The route takes a body.
    pub(crate) fn takes<T: JsonSchema>(mut self) -> Self {
        self.body = Some(|generator| generator.subschema_for::<T>());
        self
    }

    /// The route takes text.
    pub(crate) fn takes_text(mut self) -> Self {
        self.body_type = "text/plain";
        self.takes::<String>()
    }

    /// The route answers with 201.
    pub(crate) fn creates(mut self) -> Self {
        self.success = 201;
        self
    }

    /// The route answers with 202.
    pub(crate) fn accepted(mut self) -> Self {
        self.success = 202;
        self
    }

    /// The route answers with 200 instead, in the same shape, where nothing new is made.
    pub(crate) fn or_ok(mut self) -> Self {
        self.also_ok = true;
        self
    }

    /// The route answers with 204 and nothing else.
    pub(crate) fn empty(mut self) -> Self {
        self.success = 204;
        self
    }

    /// The route answers with server-sent events instead if it is asked to.
    pub(crate) fn may_stream(mut self) -> Self {
        self.may_stream = true;
        self
    }

    /// The errors of the route have this shape.
    pub(crate) fn fails_with<T: JsonSchema>(mut self) -> Self {
        self.error = |generator| generator.subschema_for::<T>();
        self
    }

    /// The route answers with server-sent events, whose data is what it answers with.
    pub(crate) fn streams(mut self) -> Self {
        self.content_type = "text/event-stream";
        self
    }

    /// The route answers with plain text.
    pub(crate) fn text(mut self) -> Self {
        self.content_type = "application/openmetrics-text";
        self
    }

    /// The route answers with content of this type.
    pub(crate) fn answers_as(mut self, content_type: &'static str) -> Self {
        self.content_type = content_type;
        self
    }

    /// The route takes a parameter in the query.
    pub(crate) fn query(mut self, name: &str, about: &str, schema: Value) -> Self {
        self.parameters.push(json!({ "name": name, "in": "query", "description": about, "schema": schema }));
        self
    }

    /// The route needs a parameter in the query.
    pub(crate) fn required_query(mut self, name: &str, about: &str, schema: Value) -> Self {
        self.parameters.push(
            json!({ "name": name, "in": "query", "required": true, "description": about, "schema": schema }),
        );
        self
    }

    /// The route takes a header.
    pub(crate) fn header(mut self, name: &str, about: &str) -> Self {
        let schema = json!({ "type": "string" });
        self.parameters.push(json!({ "name": name, "in": "header", "description": about, "schema": schema }));
        self
    }

    /// The route takes `limit` and `cursor`.
    pub(crate) fn pages(self, most: usize, default: usize) -> Self {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": most, "default": default });
        self.query("limit", "The most entries of the page.", limit).query(
            "cursor",
            "`nextCursor` of the page before.",
            json!({ "type": "string" }),
        )
    }

    /// Whether bodies of the route may have no other fields than those that are described.
    pub(crate) fn is_checked(&self) -> bool {
        self.path.split('/').nth(1).is_some_and(|surface| CHECKED.contains(&surface))
    }

    /// The method of the route, in small letters.
    pub(crate) fn method(&self) -> &'static str {
        self.method
    }

    /// The path of the route, with its parameters in braces.
    pub(crate) fn path(&self) -> &'static str {
        self.path
    }

    /// The scope that a key needs for a route that changes something and takes no body for that.
    pub(crate) fn scope_without_body(&self) -> Option<KeyScope> {
        (self.body.is_none() && self.method != "get").then_some(self.scope)
    }

    /// The schema of the JSON that the route takes.
    pub(crate) fn json_body(&self) -> Option<SchemaOf> {
        self.body.filter(|_| self.body_type == "application/json")
    }

    fn describe(&self, Schemas { answers, bodies }: &mut Schemas) -> Value {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let path_parameters = names.map(
            |name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }),
        );
        let parameters: Vec<Value> = path_parameters.chain(self.parameters.iter().cloned()).collect();
        let content = |schema: Schema, kind: &str| json!({ kind: { "schema": schema } });
        let mut done = json!({ "description": "It is done." });
        if self.success != 204 {
            done["content"] = content((self.answer)(answers), self.content_type);
        }
        if self.may_stream {
            done["content"]["text/event-stream"] = json!({ "schema": { "type": "string" } });
        }
        let problem = content((self.error)(answers), "application/json");
        let mut description = json!({
            "operationId": self.id,
            "summary": self.summary,
            "parameters": parameters,
            "responses": {
                self.success.to_string(): done,
                "default": { "description": "It is not, and why.", "content": problem },
            },
        });
        if self.also_ok {
            description["responses"]["200"] = description["responses"][self.success.to_string()].clone();
        }
        if let Some(body) = self.body {
            description["requestBody"] = json!({ "content": content(body(bodies), self.body_type) });
        }
        description["security"] = self.security.clone();
        description
    }
}

impl Api {
    pub(crate) fn get(self, path: &'static str, handler: MethodRouter<App>, operation: Operation) -> Self {
        self.add("get", path, handler, operation)
    }

    pub(crate) fn post(self, path: &'static str, handler: MethodRouter<App>, operation: Operation) -> Self {
        self.add("post", path, handler, operation)
    }

    pub(crate) fn put(self, path: &'static str, handler: MethodRouter<App>, operation: Operation) -> Self {
        self.add("put", path, handler, operation)
    }

    pub(crate) fn patch(self, path: &'static str, handler: MethodRouter<App>, operation: Operation) -> Self {
        self.add("patch", path, handler, operation)
    }

    pub(crate) fn delete(self, path: &'static str, handler: MethodRouter<App>, operation: Operation) -> Self {
        self.add("delete", path, handler, operation)
    }

    /// The same route is found under another spelling of its path, which is not described again.
    pub(crate) fn also(mut self, path: &'static str, handler: MethodRouter<App>) -> Self {
        self.router = self.router.route(path, handler);
        self
    }

    fn add(
        mut self,
        method: &'static str,
        path: &'static str,
        handler: MethodRouter<App>,
        operation: Operation,
    ) -> Self {
        self.router = self.router.route(path, handler);
        self.operations.push(Operation { method, path, ..operation });
        self
    }

    /// All routes of both.
    pub(crate) fn and(mut self, other: Api) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    /// The routes, and their descriptions.
    pub(crate) fn into_parts(self) -> (Router<App>, Vec<Operation>) {
        (self.router, self.operations)
    }
}

/// The schemas that were used: a field with a default is always in an answer and need not be in a body.
struct Schemas {
    answers: SchemaGenerator,
    bodies: SchemaGenerator,
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    })
}

/// Makes schemas of what requests may hold.
pub(crate) fn body_generator() -> SchemaGenerator {
    settings().for_deserialize().into_generator()
}

impl Schemas {
    fn new() -> Self {
        Schemas { answers: settings().for_serialize().into_generator(), bodies: body_generator() }
    }

    fn into_definitions(mut self) -> Map<String, Value> {
        let mut definitions = self.answers.take_definitions(true);
        // Where both use a type, the looser description is true of either.
        definitions.extend(self.bodies.take_definitions(true));
        definitions
    }
}

/// The OpenAPI document of these operations.
pub(crate) fn document(operations: &[Operation]) -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.describe(&mut schemas);
    }
    let mut definitions = schemas.into_definitions();
    for operation in operations.iter().filter(|operation| operation.is_checked()) {
        let body = format!("/{}/requestBody/content/application~1json/schema", operation.method);
        if let Some(schema) = paths.get_mut(operation.path).and_then(|path| path.pointer_mut(&body)) {
            close_body(schema, &mut definitions);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Petasos",
            "description": "Runs AI agents as durable sessions.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
    })
}
