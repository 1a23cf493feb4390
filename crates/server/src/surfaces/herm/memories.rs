//! Memories: notes that an agent keeps for a user.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::ids::MemoryId;
use petasos_core::key::KeyScope;
use petasos_core::memory::{MemoryEntry, MemorySource, MemoryTarget};
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Deleted, for_user, seconds, user_scope};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let (all, one) = ("/v1/agents/{agentId}/memories", "/v1/agents/{agentId}/memories/{memoryId}");
    let text = || json!({ "type": "string" });
    Api::default()
        .get(
            all,
            routing::get(list),
            for_user(Operation::new::<Page<Memory>>("listMemories", "What an agent noted for a user.", read))
                .query("q", "Only those that contain this text.", text()),
        )
        .post(
            all,
            routing::post(create),
            for_user(Operation::new::<Memory>("createMemory", "Adds a note.", write))
                .takes::<NewMemory>()
                .creates(),
        )
        .delete(
            all,
            routing::delete(clear),
            for_user(Operation::new::<Deleted>("deleteMemories", "Forgets everything about a user.", write)),
        )
        .get(one, routing::get(get), for_user(Operation::new::<Memory>("getMemory", "One note.", read)))
        .patch(
            one,
            routing::patch(change),
            for_user(Operation::new::<Memory>("changeMemory", "Writes a note anew.", write))
                .takes::<Content>(),
        )
        .delete(
            one,
            routing::delete(delete),
            for_user(Operation::new::<Deleted>("deleteMemory", "Removes a note.", write)),
        )
}

/// A note.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Memory {
    id: MemoryId,
    target: MemoryTarget,
    content: String,
    source: MemorySource,
    created_at: String,
    updated_at: String,
}

impl From<MemoryEntry> for Memory {
    fn from(entry: MemoryEntry) -> Self {
        Memory {
            id: entry.id,
            target: entry.target,
            content: entry.content,
            source: entry.source,
            created_at: seconds(entry.created_at),
            updated_at: seconds(entry.updated_at),
        }
    }
}

/// A note to add.
#[derive(Deserialize, JsonSchema)]
struct NewMemory {
    content: String,
    /// What it is about: the work (`memory`) or the user.
    #[serde(default)]
    target: MemoryTarget,
}

/// What a note says from now on.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "MemoryPatch")]
struct Content {
    content: String,
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Page<Memory>>, Problem> {
    let entries = engine.memories(&user_scope(tenant, &agent, &query)?).await?;
    let wanted = query.text("q").unwrap_or_default().to_lowercase();
    let found = entries.into_iter().filter(|entry| entry.content.to_lowercase().contains(&wanted));
    Ok(Json(Page::new(found.map(Memory::from).collect(), None)))
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(agent): Path<String>,
    query: Query,
    Body(new): Body<NewMemory>,
) -> Result<(StatusCode, Json<Memory>), Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    let entry = engine.add_memory(&scope, new.target, &new.content).await?;
    Ok((StatusCode::CREATED, Json(entry.into())))
}

async fn clear(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Deleted>, Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    engine.delete_memories(&scope).await?;
    Ok(Json(Deleted { id: scope.user_id, deleted: true }))
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path((agent, memory)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Memory>, Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    Ok(Json(engine.memory(&scope, &id("memory", &memory)?).await?.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, memory)): Path<(String, String)>,
    query: Query,
    Body(change): Body<Content>,
) -> Result<Json<Memory>, Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    let entry = engine.change_memory(&scope, &id("memory", &memory)?, &change.content).await?;
    Ok(Json(entry.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((agent, memory)): Path<(String, String)>,
    query: Query,
) -> Result<Json<Deleted>, Problem> {
    let scope = user_scope(tenant, &agent, &query)?;
    engine.delete_memory(&scope, &id("memory", &memory)?).await?;
    Ok(Json(Deleted { id: memory, deleted: true }))
}
