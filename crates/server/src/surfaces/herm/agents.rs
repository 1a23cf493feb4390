//! Agents: versioned definitions.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::agent::{AgentDefinition, AgentVersion, ConfiguredSkill, McpServer, ToolEntry};
use petasos_core::agent_option::AgentOption;
use petasos_core::ids::AgentId;
use petasos_core::key::KeyScope;
use petasos_core::model_settings::ModelSettings;
use petasos_engine::{AgentChange, Engine};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::seconds;
use crate::auth::{ReadsAgents, WritesAgents};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::AgentsRead, KeyScope::AgentsWrite);
    let version = json!({ "type": "integer", "minimum": 1 });
    Api::default()
        .post(
            "/v1/agents",
            routing::post(create),
            Operation::new::<Agent>("createAgent", "Creates an agent.", write)
                .takes::<AgentDefinition>()
                .creates(),
        )
        .get(
            "/v1/agents",
            routing::get(list),
            Operation::new::<Page<Agent>>("listAgents", "Agents that are not archived, newest first.", read)
                .pages(100, 20),
        )
        .get(
            "/v1/agents/{agentId}",
            routing::get(get),
            Operation::new::<Agent>("getAgent", "One version of an agent.", read).query(
                "version",
                "The version; the newest unless given.",
                version,
            ),
        )
        .patch(
            "/v1/agents/{agentId}",
            routing::patch(change),
            Operation::new::<Agent>("changeAgent", "Makes a version, unless nothing changes.", write)
                .takes::<AgentPatch>(),
        )
        .get(
            "/v1/agents/{agentId}/versions",
            routing::get(versions),
            Operation::new::<Page<Agent>>("listAgentVersions", "All versions, newest first.", read)
                .pages(100, 20),
        )
        .post(
            "/v1/agents/{agentId}/archive",
            routing::post(archive),
            Operation::new::<Agent>("archiveAgent", "No new sessions; those that exist go on.", write),
        )
}

/// Fields of an agent to replace; `metadata` is merged, and `null` brings a field back to its default.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
struct AgentPatch {
    name: Option<String>,
    model: Option<String>,
    /// Replaced whole.
    model_settings: Option<ModelSettings>,
    instructions: Option<String>,
    tools: Option<Vec<ToolEntry>>,
    mcp_servers: Option<Vec<McpServer>>,
    skills: Option<Vec<ConfiguredSkill>>,
    options: Option<Vec<AgentOption>>,
    metadata: Option<Map<String, Value>>,
    /// The version that is being changed; another one is a conflict.
    version: Option<u32>,
    /// Has no effect, like the times: an agent may be sent back as it was shown.
    id: Option<String>,
    created_at: Option<String>,
    updated_at: Option<String>,
    archived_at: Option<String>,
}

/// An agent as it is shown: its definition, and what we know about it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Agent {
    id: AgentId,
    version: u32,
    #[serde(flatten)]
    definition: AgentDefinition,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl From<AgentVersion> for Agent {
    fn from(agent: AgentVersion) -> Self {
        Agent {
            id: agent.id,
            version: agent.version,
            definition: agent.definition,
            created_at: seconds(agent.created_at),
            updated_at: seconds(agent.updated_at),
            archived_at: agent.archived_at.map(seconds),
        }
    }
}

/// Fields of an agent that a caller may send back but not change.
const READ_ONLY: [&str; 4] = ["id", "createdAt", "updatedAt", "archivedAt"];
const CHANGEABLE: [&str; 9] = [
    "name",
    "model",
    "modelSettings",
    "instructions",
    "tools",
    "mcpServers",
    "skills",
    "options",
    "metadata",
];

pub(super) async fn create(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Body(definition): Body<AgentDefinition>,
) -> Result<(StatusCode, Json<Agent>), Problem> {
    let agent = engine.create_agent(&tenant, None, definition).await?;
    Ok((StatusCode::CREATED, Json(agent.into())))
}

pub(super) async fn list(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    query: Query,
) -> Result<Json<Page<Agent>>, Problem> {
    Ok(Json(Page::of(engine.agents(&tenant, query.page()?).await?, Agent::from)))
}

pub(super) async fn get(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Agent>, Problem> {
    let version = query.parsed("version", "the number of a version")?;
    let agent = engine.agent(&tenant, &id("agent", &agent)?, version).await?;
    Ok(Json(agent.into()))
}

pub(super) async fn versions(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(agent): Path<String>,
    query: Query,
) -> Result<Json<Page<Agent>>, Problem> {
    let page = query.page()?;
    Ok(Json(Page::of(engine.agent_versions(&tenant, &id("agent", &agent)?, page).await?, Agent::from)))
}

pub(super) async fn change(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(agent): Path<String>,
    Body(mut fields): Body<Map<String, Value>>,
) -> Result<Json<Agent>, Problem> {
    let expected_version = match fields.remove("version") {
        None | Some(Value::Null) => None,
        Some(version) => {
            let number = version.as_u64().and_then(|version| u32::try_from(version).ok());
            Some(number.ok_or_else(|| Problem::validation("version", "must be the number of a version"))?)
        }
    };
    fields.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
    if let Some(unknown) = fields.keys().find(|name| !CHANGEABLE.contains(&name.as_str())) {
        let problem = format!("cannot be changed; these can: {}", CHANGEABLE.join(", "));
        return Err(Problem::validation(unknown.clone(), problem));
    }
    let change = AgentChange { fields, expected_version };
    let agent = engine.change_agent(&tenant, &id("agent", &agent)?, change).await?;
    Ok(Json(agent.into()))
}

pub(super) async fn archive(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(agent): Path<String>,
) -> Result<Json<Agent>, Problem> {
    let agent = engine.archive_agent(&tenant, &id("agent", &agent)?).await?;
    Ok(Json(agent.into()))
}
