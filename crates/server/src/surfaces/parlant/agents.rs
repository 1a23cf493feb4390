//! Agents in raw shape, to be read only: they are made in files and over `/v1/agents`.

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::agent::AgentVersion;
use petasos_core::ids::AgentId;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use petasos_store::PageRequest;
use schemars::JsonSchema;
use serde::Serialize;

use super::errors::Detail;
use crate::auth::ReadsAgents;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;

const PAGE: usize = 100;

pub(super) fn api() -> Api {
    let read = KeyScope::AgentsRead;
    Api::default()
        .get(
            "/parlant/agents",
            routing::get(list),
            Operation::new::<Vec<Agent>>("parlantListAgents", "All agents.", read).fails_with::<Detail>(),
        )
        .get(
            "/parlant/agents/{agentId}",
            routing::get(get),
            Operation::new::<Agent>("parlantGetAgent", "An agent.", read).fails_with::<Detail>(),
        )
}

/// An agent in raw shape.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ParlantAgent")]
struct Agent {
    id: AgentId,
    name: String,
    description: Option<String>,
    max_engine_iterations: u32,
    composition_mode: &'static str,
    message_output_mode: &'static str,
    tags: Vec<String>,
}

fn shown(engine: &Engine, agent: AgentVersion) -> Agent {
    let instructions = agent.definition.instructions;
    Agent {
        id: agent.id,
        name: agent.definition.name,
        description: (!instructions.is_empty()).then_some(instructions),
        max_engine_iterations: engine.turn_model_calls(),
        composition_mode: "fluid",
        message_output_mode: "block",
        tags: Vec::new(),
    }
}

async fn list(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
) -> Result<Json<Vec<Agent>>, Problem> {
    let (mut agents, mut after) = (Vec::new(), None);
    loop {
        let page = engine.agents(&tenant, PageRequest { after, limit: PAGE }).await?;
        agents.extend(page.items.into_iter().map(|agent| shown(&engine, agent)));
        after = page.next;
        if after.is_none() {
            return Ok(Json(agents));
        }
    }
}

async fn get(
    State(engine): State<Engine>,
    ReadsAgents(tenant): ReadsAgents,
    Path(agent): Path<String>,
) -> Result<Json<Agent>, Problem> {
    let agent = engine.agent(&tenant, &id("agent", &agent)?, None).await?;
    Ok(Json(shown(&engine, agent)))
}
