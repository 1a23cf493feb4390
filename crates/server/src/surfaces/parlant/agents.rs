//! Agents in raw shape. One that is made here has the model of the agent that conversations have by default, since this
//! dialect has no word for models; everything else about agents is in files and over `/v1/agents`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing;
use petasos_core::agent::{AgentDefinition, AgentVersion};
use petasos_core::ids::{AgentId, TenantId};
use petasos_core::key::KeyScope;
use petasos_engine::{AgentChange, Engine};
use petasos_store::{Bearer, Page};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use super::errors::Detail;
use super::tags::{ChangeTags, of_all};
use crate::auth::{ReadsAgents, WritesAgents};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::rows::{self, Pages};
use crate::surfaces::conversation::DEFAULT_AGENT;
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::AgentsRead, KeyScope::AgentsWrite);
    let (all, one) = ("/parlant/agents", "/parlant/agents/{agentId}");
    let list_all = Operation::new::<Vec<Agent>>("parlantListAgents", "All agents.", read);
    let make = Operation::new::<Agent>("parlantCreateAgent", "Makes an agent.", write)
        .takes::<CreateAgent>()
        .creates();
    let read_one = Operation::new::<Agent>("parlantGetAgent", "An agent.", read);
    let change_one =
        Operation::new::<Agent>("parlantChangeAgent", "Changes an agent.", write).takes::<ChangeAgent>();
    let archive = Operation::new::<()>("parlantDeleteAgent", "Archives an agent.", write).empty();
    Api::default()
        .get(all, routing::get(list), list_all.fails_with::<Detail>())
        .post(all, routing::post(create), make.fails_with::<Detail>())
        .get(one, routing::get(get), read_one.fails_with::<Detail>())
        .patch(one, routing::patch(change), change_one.fails_with::<Detail>())
        .delete(one, routing::delete(delete), archive.fails_with::<Detail>())
}

/// An agent in raw shape.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantAgent")]
struct Agent {
    id: AgentId,
    name: String,
    /// Its instructions.
    description: Option<String>,
    max_engine_iterations: u32,
    composition_mode: &'static str,
    message_output_mode: &'static str,
    tags: Vec<String>,
}

/// What an agent is made with. How messages are composed and how often the model is called is the server's to say.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantCreateAgent")]
struct CreateAgent {
    name: String,
    id: Option<String>,
    description: Option<String>,
    tags: Option<Vec<String>>,
}

/// What can be changed about an agent.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantChangeAgent")]
struct ChangeAgent {
    name: Option<String>,
    description: Option<String>,
    tags: Option<ChangeTags>,
}

fn shown(engine: &Engine, agent: AgentVersion, tags: Vec<String>) -> Agent {
    let instructions = agent.definition.instructions;
    Agent {
        id: agent.id,
        name: agent.definition.name,
        description: (!instructions.is_empty()).then_some(instructions),
        max_engine_iterations: engine.turn_model_calls(),
        composition_mode: "fluid",
        message_output_mode: "block",
        tags,
    }
}

/// An agent that is not archived: archived ones are gone, as far as this dialect knows.
async fn present(engine: &Engine, tenant: &TenantId, agent: &str) -> Result<AgentVersion, Problem> {
    let found = engine.agent(tenant, &id("agent", agent)?, None).await?;
    if found.archived_at.is_some() { Err(Problem::not_found("agent", agent)) } else { Ok(found) }
}

async fn list(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    until: Until,
) -> Result<Response, Problem> {
    let read = move |page| {
        let (engine, tenant) = (engine.clone(), tenant.clone());
        async move {
            let Page { items, next } = engine.agents(&tenant, page).await?;
            let ids = items.iter().map(|agent| agent.id.to_string());
            let mut tags = of_all(&engine, &tenant, Bearer::Agent, ids).await?;
            let with_tags = |agent: AgentVersion| {
                let tags = tags.remove(agent.id.as_str()).unwrap_or_default();
                rows::json(&shown(&engine, agent, tags))
            };
            Ok(Page { items: items.into_iter().map(with_tags).collect::<Result<_, _>>()?, next })
        }
    };
    rows::respond("[".into(), Pages::new(read, "]"), until).await
}

async fn create(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Body(body): Body<CreateAgent>,
) -> Result<(StatusCode, Json<Agent>), Problem> {
    let tags = ChangeTags::adding(body.tags);
    tags.check(&engine, &tenant).await?;
    let agent_id: Option<AgentId> =
        body.id.map(|id| id.parse().map_err(|error| Problem::validation("id", error))).transpose()?;
    let model = match engine.agent(&tenant, &id("agent", DEFAULT_AGENT)?, None).await {
        Ok(usual) => usual.definition.model,
        Err(petasos_engine::Error::NotFound { .. }) => {
            let problem = format!("there is no agent {DEFAULT_AGENT} whose model it could have");
            return Err(Problem::validation("agent", problem));
        }
        Err(error) => return Err(error.into()),
    };
    let definition = json!({
        "name": body.name, "model": model, "instructions": body.description.unwrap_or_default(),
    });
    let definition: AgentDefinition =
        serde_json::from_value(definition).map_err(|error| Problem::validation("body", error))?;
    let made = engine.create_agent(&tenant, agent_id, definition).await?;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Agent, made.id.as_str())).await?;
    Ok((StatusCode::CREATED, Json(shown(&engine, made, tags))))
}

async fn get(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(agent): Path<String>,
) -> Result<Json<Agent>, Problem> {
    let found = present(&engine, &tenant, &agent).await?;
    let tags = ChangeTags::default().carry_out(&engine, &tenant, (Bearer::Agent, &agent)).await?;
    Ok(Json(shown(&engine, found, tags)))
}

async fn change(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(agent): Path<String>,
    Body(body): Body<ChangeAgent>,
) -> Result<Json<Agent>, Problem> {
    let tags = body.tags.unwrap_or_default();
    tags.check(&engine, &tenant).await?;
    let found = present(&engine, &tenant, &agent).await?;
    let given = [("name", body.name), ("instructions", body.description)].into_iter();
    let fields: Map<_, _> =
        given.filter_map(|(field, value)| Some((field.to_owned(), value?.into()))).collect();
    let change = AgentChange { fields, expected_version: None };
    let changed = engine.change_agent(&tenant, &found.id, change).await?;
    let tags = tags.carry_out(&engine, &tenant, (Bearer::Agent, &agent)).await?;
    Ok(Json(shown(&engine, changed, tags)))
}

async fn delete(
    State(engine): State<Engine>,
    WritesAgents(tenant): WritesAgents,
    Path(agent): Path<String>,
) -> Result<StatusCode, Problem> {
    let found = present(&engine, &tenant, &agent).await?;
    engine.archive_agent(&tenant, &found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
