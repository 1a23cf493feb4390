//! Agents: created, changed by making versions, archived.

use petasos_core::agent::{AgentDefinition, AgentVersion};
use petasos_core::ids::{AgentId, TenantId};
use petasos_store::{Page, PageRequest};
use petasos_tools::{all_names, clarify, delegate_task, request_secret};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::engine::{Engine, now};
use crate::error::{Error, Result};

/// A change to an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentChange {
    /// The fields to replace, as they are written in a definition.
    pub fields: Map<String, Value>,
    /// The version that the caller thinks it changes.
    pub expected_version: Option<u32>,
}

impl Engine {
    /// Keeps a new agent, under a name of its own or a new one.
    pub async fn create_agent(
        &self,
        tenant: &TenantId,
        id: Option<AgentId>,
        definition: AgentDefinition,
    ) -> Result<AgentVersion> {
        self.validate_tool_names(&definition)?;
        self.keep_agent(tenant, id, definition).await
    }

    /// Keeps a new agent, whatever its tools are called: those of one that comes from elsewhere may not be here.
    pub(crate) async fn keep_agent(
        &self,
        tenant: &TenantId,
        id: Option<AgentId>,
        definition: AgentDefinition,
    ) -> Result<AgentVersion> {
        self.validate(tenant, &definition)?;
        self.shared.deliveries.check_metadata(&definition.metadata)?;
        self.check_skills(&definition, &[]).await?;
        let at = now();
        let agent = AgentVersion {
            id: id.unwrap_or_else(|| AgentId::from_uuid(Uuid::now_v7())),
            tenant: tenant.clone(),
            version: 1,
            definition,
            created_at: at,
            updated_at: at,
            archived_at: None,
        };
        self.shared.store.create_agent(agent.clone()).await.map_err(|error| match error {
            petasos_store::Error::AlreadyExists { .. } => {
                Error::AlreadyExists { kind: "agent", id: agent.id.to_string() }
            }
            error => error.into(),
        })?;
        Ok(agent)
    }

    fn validate(&self, tenant: &TenantId, definition: &AgentDefinition) -> Result<()> {
        definition.validate()?;
        let mcp = self.shared.tools.mcp();
        definition.validate_toolsets(|name| mcp.is_configured(tenant, name))?;
        for (index, server) in definition.mcp_servers.iter().enumerate() {
            if let Some(problem) = mcp.problem_with(tenant, &server.url) {
                return Err(Error::Invalid { field: format!("mcpServers[{index}].url"), problem });
            }
        }
        Ok(())
    }

    fn validate_tool_names(&self, definition: &AgentDefinition) -> Result<()> {
        let of_toolbox: Vec<String> = self.shared.tools.iter().map(|tool| tool.spec().name).collect();
        let of_engine = [clarify::NAME, request_secret::NAME, delegate_task::NAME];
        let names = of_toolbox.iter().map(String::as_str).chain(of_engine);
        let names: Vec<&str> = names.flat_map(all_names).collect();
        Ok(definition.validate_tool_names(&names)?)
    }

    /// One version of an agent, the newest unless another is named.
    pub async fn agent(&self, tenant: &TenantId, id: &AgentId, version: Option<u32>) -> Result<AgentVersion> {
        let agent = self.shared.store.agent(tenant, id, version).await?;
        agent.ok_or_else(|| not_found(id, version))
    }

    /// A tenant's agents, newest first, archived ones left out.
    pub async fn agents(&self, tenant: &TenantId, page: PageRequest) -> Result<Page<AgentVersion>> {
        Ok(self.shared.store.agents(tenant, page).await?)
    }

    /// All versions of an agent, newest first.
    pub async fn agent_versions(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        page: PageRequest,
    ) -> Result<Page<AgentVersion>> {
        self.agent(tenant, id, None).await?;
        Ok(self.shared.store.agent_versions(tenant, id, page).await?)
    }

    /// Makes the next version of an agent, unless nothing changes.
    pub async fn change_agent(
        &self,
        tenant: &TenantId,
        id: &AgentId,
        change: AgentChange,
    ) -> Result<AgentVersion> {
        loop {
            let current = self.agent(tenant, id, None).await?;
            if let Some(expected) = change.expected_version.filter(|expected| *expected != current.version) {
                return Err(Error::VersionConflict { id: id.to_string(), expected, actual: current.version });
            }
            let definition = merge(&current.definition, &change.fields)?;
            self.validate(tenant, &definition)?;
            if definition == current.definition {
                return Ok(current);
            }
            // A plugin may have gone since: what is not being changed is not held against it.
            if definition.tools != current.definition.tools {
                self.validate_tool_names(&definition)?;
            }
            if definition.metadata != current.definition.metadata {
                self.shared.deliveries.check_metadata(&definition.metadata)?;
            }
            self.check_skills(&definition, &current.definition.skills).await?;
            let version = current.version + 1;
            let next = AgentVersion { version, definition, updated_at: now(), ..current };
            match self.shared.store.add_agent_version(next.clone()).await {
                Ok(()) => return Ok(next),
                // Somebody else made a version in between; the change applies to that one.
                Err(petasos_store::Error::Stale { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Archives an agent: new sessions are refused, those that exist go on.
    pub async fn archive_agent(&self, tenant: &TenantId, id: &AgentId) -> Result<AgentVersion> {
        let agent = self.agent(tenant, id, None).await?;
        if agent.archived_at.is_some() {
            return Ok(agent);
        }
        self.shared.store.archive_agent(tenant, id, Some(now())).await?;
        self.agent(tenant, id, None).await
    }

    /// Makes an archived agent one like any other again.
    pub async fn bring_agent_back(&self, tenant: &TenantId, id: &AgentId) -> Result<()> {
        Ok(self.shared.store.archive_agent(tenant, id, None).await?)
    }
}

fn not_found(id: &AgentId, version: Option<u32>) -> Error {
    let id = version.map_or_else(|| id.to_string(), |version| format!("{id} version {version}"));
    Error::NotFound { kind: "agent", id }
}

/// Replaces fields of a definition; metadata is merged by key. `null` brings a field back to its default, and
/// removes a key of the metadata.
fn merge(current: &AgentDefinition, fields: &Map<String, Value>) -> Result<AgentDefinition> {
    let invalid =
        |error: serde_json::Error| Error::Invalid { field: "body".to_owned(), problem: error.to_string() };
    let mut merged = match serde_json::to_value(current).map_err(invalid)? {
        Value::Object(merged) => merged,
        _ => Map::new(),
    };
    for (name, value) in fields {
        match (name.as_str(), value, merged.get_mut(name)) {
            ("metadata", Value::Object(patch), Some(Value::Object(metadata))) => {
                merge_by_key(metadata, patch);
            }
            _ => merge_by_key(&mut merged, &Map::from_iter([(name.clone(), value.clone())])),
        }
    }
    serde_json::from_value(Value::Object(merged)).map_err(invalid)
}

/// Puts the entries of a patch into a map; `null` removes.
pub(crate) fn merge_by_key(map: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, value) in patch {
        if value.is_null() {
            map.remove(key);
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
}
