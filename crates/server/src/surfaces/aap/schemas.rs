//! `/schemas/aap/`: JSON Schemas of the protocol's types, generated from the types themselves.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use axum::Json;
use axum::extract::Path;
use axum::routing;
use petasos_core::key::KeyScope;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use super::types::{
    AgentInfo, AgentResponse, ContentBlock, ErrorBody, GetHistory, GetMeta, GetSessions, HistoryMessage,
    PostSessions, PostTurn, SessionCreated, SessionInfo, StopReason, ToolSpec, TurnEvent, TurnMessage,
};
use crate::openapi::{Api, Operation};
use crate::problem::Problem;

pub(super) fn api() -> Api {
    let list = Operation::new::<Vec<String>>(
        "aapSchemas",
        "The names of the schemas of the Agent Application Protocol.",
        KeyScope::Admin,
    );
    let one = Operation::new::<Map<String, Value>>(
        "aapSchema",
        "A JSON Schema of the Agent Application Protocol.",
        KeyScope::Admin,
    );
    Api::default()
        .get("/schemas/aap", routing::get(list_names), list.any_key())
        .also("/schemas/aap/", routing::get(list_names))
        .get("/schemas/aap/{schema}", routing::get(schema), one.any_key())
}

async fn list_names() -> Json<Vec<String>> {
    Json(names().collect())
}

/// The names of the schemas below `/schemas/aap/`.
pub(crate) fn names() -> impl Iterator<Item = String> {
    schemas().keys().map(|name| format!("{name}.json"))
}

async fn schema(Path(file): Path<String>) -> Result<Json<&'static Schema>, Problem> {
    let found = schemas().get(file.strip_suffix(".json").unwrap_or(&file));
    found.map(Json).ok_or_else(|| Problem::not_found("schema", &file))
}

fn schemas() -> &'static BTreeMap<&'static str, Schema> {
    static SCHEMAS: OnceLock<BTreeMap<&'static str, Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(|| {
        BTreeMap::from([
            ("GetMeta", answer::<GetMeta>()),
            ("AgentInfo", answer::<AgentInfo>()),
            ("PostSessions", body::<PostSessions>()),
            ("SessionCreated", answer::<SessionCreated>()),
            ("GetSessions", answer::<GetSessions>()),
            ("SessionInfo", answer::<SessionInfo>()),
            ("GetHistory", answer::<GetHistory>()),
            ("HistoryMessage", answer::<HistoryMessage>()),
            ("ContentBlock", answer::<ContentBlock>()),
            ("ToolSpec", answer::<ToolSpec>()),
            ("PostTurn", body::<PostTurn>()),
            ("TurnMessage", body::<TurnMessage>()),
            ("AgentResponse", answer::<AgentResponse>()),
            ("TurnEvent", answer::<TurnEvent>()),
            ("StopReason", answer::<StopReason>()),
            ("Error", answer::<ErrorBody>()),
        ])
    })
}

/// What we send: a field with a default is always there.
fn answer<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// What we take: a field with a default may be left out.
fn body<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>()
}
