//! `/schemas/`: JSON Schemas of what is sent and taken outside of requests for sessions, generated from the types.
//!
//! A schema's `$id` ends in its version, which is raised when what it describes changes in a way that readers notice.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::Json;
use axum::extract::Path;
use axum::routing;
use petasos_core::key::KeyScope;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::deliveries::DeliveryShown;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::surfaces::aap;
use crate::surfaces::conversation::ConversationEvent;
use crate::surfaces::routines::{CallbackPayload, Run, TriggerRequest};

/// What a callback has by default.
const CALLBACK_MAY_LACK: [&str; 7] =
    ["schema_version", "output", "error", "trace_id", "metadata", "idempotency_key", "origin_service"];

/// All schemas. A new one is a line here.
fn all() -> Vec<(&'static str, Schema)> {
    vec![
        may_lack(sent::<ConversationEvent>("conversation-event.json", 1), &["kind", "stage", "error_detail"]),
        sent::<DeliveryShown>("delivery.json", 1),
        may_lack(sent::<CallbackPayload>("autonomous-callback-payload.json", 1), &CALLBACK_MAY_LACK),
        taken::<TriggerRequest>("autonomous-trigger-request.json", 1),
        sent::<Run>("run.json", 1),
    ]
}

pub(crate) fn api() -> Api {
    let list = Operation::new::<Names>("listSchemas", "The names of the JSON Schemas.", KeyScope::Admin);
    let one = Operation::new::<Map<String, Value>>("getSchema", "A JSON Schema.", KeyScope::Admin);
    Api::default()
        .get("/schemas/", routing::get(names), list.any_key())
        .also("/schemas", routing::get(names))
        .get("/schemas/{name}", routing::get(schema), one.any_key())
}

/// The names of all schemas, those of the surfaces included.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SchemaNames")]
struct Names {
    schemas: Vec<String>,
}

async fn names() -> Json<Names> {
    let of_aap = aap::schema_names().map(|name| format!("aap/{name}"));
    Json(Names { schemas: of_aap.chain(by_name().keys().map(|name| (*name).to_owned())).collect() })
}

async fn schema(Path(name): Path<String>) -> Result<Json<&'static Schema>, Problem> {
    by_name().get(name.as_str()).map(Json).ok_or_else(|| Problem::not_found("schema", &name))
}

fn by_name() -> &'static BTreeMap<&'static str, Schema> {
    static SCHEMAS: OnceLock<BTreeMap<&'static str, Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| all().into_iter().collect())
}

/// The schema of what we send: a field with a default is always there.
fn sent<T: JsonSchema>(name: &'static str, version: u32) -> (&'static str, Schema) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    (name, identified(name, version, settings.into_generator().into_root_schema_for::<T>()))
}

/// The schema of what we take: a field with a default may be left out.
fn taken<T: JsonSchema>(name: &'static str, version: u32) -> (&'static str, Schema) {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    (name, identified(name, version, settings.into_generator().into_root_schema_for::<T>()))
}

/// The same for documents of others too: they may lack what the protocol has a default for, which we always send.
fn may_lack((name, mut schema): (&'static str, Schema), fields: &[&str]) -> (&'static str, Schema) {
    let optional = |field: &Value| field.as_str().is_some_and(|field| fields.contains(&field));
    let relax = |schema: &mut Schema| {
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|field| !optional(field));
        }
    };
    RecursiveTransform(relax).transform(&mut schema);
    // What does not say its kind can be of several.
    if let Some(kinds) = schema.remove("oneOf") {
        schema.insert("anyOf".to_owned(), kinds);
    }
    (name, schema)
}

fn identified(name: &str, version: u32, mut schema: Schema) -> Schema {
    let name = name.trim_end_matches(".json");
    schema.insert("$id".to_owned(), format!("urn:petasos:schema:{name}:{version}").into());
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The schemas are checked in, so that a change to them is seen in review. `UPDATE=1` writes them again.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the test")]
    fn the_schemas_that_are_checked_in_are_true() {
        let directory = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas"));
        for (name, schema) in all() {
            let (path, now) = (directory.join(name), format!("{:#}\n", schema.as_value()));
            if std::env::var("UPDATE").is_ok() {
                std::fs::create_dir_all(directory).unwrap();
                std::fs::write(&path, &now).unwrap();
            }
            let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                checked_in == now,
                "docs/schemas/{name} is old; run UPDATE=1 cargo test -p petasos-server --lib"
            );
        }
    }
}
