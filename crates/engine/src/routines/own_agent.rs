//! Agents that routines bring along.
//!
//! An inline agent becomes an agent like any other, named after its routine, so that its versions are kept and its
//! sessions are read like those of any agent.

use petasos_core::agent::AgentDefinition;
use petasos_core::ids::{AgentId, RoutineId, TenantId};
use petasos_core::routine::{InlineAgent, RoutineAgent, RoutineDefinition, RoutineRecord};
use serde_json::{Map, Value};

use super::check::invalid;
use crate::agents::AgentChange;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// The key of the metadata by which such an agent is known.
const MARK: &str = "routine";

impl Engine {
    /// Makes sure that the agent of a routine is there, and is what the routine says.
    pub(super) async fn prepare_agent(
        &self,
        tenant: &TenantId,
        routine_id: &RoutineId,
        definition: &RoutineDefinition,
    ) -> Result<()> {
        let inline = match &definition.agent {
            RoutineAgent::Named(id) => return self.find_agent(tenant, id).await,
            RoutineAgent::Inline(inline) => inline,
        };
        let id = own_agent_id(routine_id)?;
        let agent = agent_definition(routine_id, definition, inline);
        self.put_own_agent(tenant, id, agent).await.map_err(|error| match error {
            Error::InvalidDefinition(wrong) => invalid(format!("agent.{}", wrong.field), wrong.problem),
            error => error,
        })
    }

    async fn put_own_agent(&self, tenant: &TenantId, id: AgentId, agent: AgentDefinition) -> Result<()> {
        // Before it becomes fields of a change, among which what means nothing is no longer found.
        agent.validate()?;
        match self.agent(tenant, &id, None).await {
            Err(Error::NotFound { .. }) => self.create_agent(tenant, Some(id), agent).await.map(drop),
            Ok(current) if current.definition.metadata.get(MARK) != agent.metadata.get(MARK) => {
                Err(invalid("agent", format!("there is an agent {id} that is not this routine's")))
            }
            Ok(current) => {
                if current.archived_at.is_some() {
                    // The routine was deleted, and is back.
                    self.bring_agent_back(tenant, &id).await?;
                }
                let fields = match serde_json::to_value(&agent) {
                    Ok(Value::Object(fields)) => fields,
                    _ => Map::new(),
                };
                self.change_agent(tenant, &id, AgentChange { fields, expected_version: None }).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    async fn find_agent(&self, tenant: &TenantId, id: &AgentId) -> Result<()> {
        match self.agent(tenant, id, None).await {
            Err(Error::NotFound { .. }) => Err(invalid("agent", format!("there is no agent {id}"))),
            other => other.map(drop),
        }
    }

    /// Puts the agent away that a routine brought along.
    pub(super) async fn archive_own_agent(&self, routine: &RoutineRecord) -> Result<()> {
        match routine.definition.agent {
            RoutineAgent::Named(_) => Ok(()),
            RoutineAgent::Inline(_) => {
                self.archive_agent(&routine.tenant, &own_agent_id(&routine.id)?).await.map(drop)
            }
        }
    }
}

/// The agent that does the work of a routine.
pub(super) fn agent_id(routine: &RoutineRecord) -> Result<AgentId> {
    match &routine.definition.agent {
        RoutineAgent::Named(id) => Ok(id.clone()),
        RoutineAgent::Inline(_) => own_agent_id(&routine.id),
    }
}

fn own_agent_id(routine_id: &RoutineId) -> Result<AgentId> {
    let id = format!("{}{routine_id}", RoutineId::PREFIX);
    id.parse().map_err(|_| invalid("id", "is too long for a routine with an agent of its own"))
}

fn agent_definition(id: &RoutineId, definition: &RoutineDefinition, inline: &InlineAgent) -> AgentDefinition {
    AgentDefinition {
        model_settings: inline.model_settings.clone(),
        name: definition.title.clone().unwrap_or_else(|| id.to_string()),
        model: inline.model.clone(),
        instructions: inline.instructions.clone(),
        tools: inline.tools.clone(),
        mcp_servers: inline.mcp_servers.clone(),
        skills: Vec::new(),
        options: Vec::new(),
        metadata: Map::from_iter([(MARK.to_owned(), id.as_str().into())]),
    }
}
