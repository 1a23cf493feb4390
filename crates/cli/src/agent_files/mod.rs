//! Agents as files: every `agents/*.yaml` (or `.yml`, `.json`) of the home is an agent of the tenant `default`, and
//! the file's name is its id.
//!
//! A new file makes an agent, a changed one a new version, and one that was written after its agent was archived brings
//! it back. A broken file is a warning and leaves the version that
//! was there; a removed one leaves the agent as it is, since sessions may refer to it: archiving is a command. At a
//! start every file is read, so what was changed over HTTP in between is what the file says again.

mod definition;

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use petasos_core::agent::{AgentDefinition, AgentVersion};
use petasos_core::ids::{AgentId, TenantId};
use petasos_engine::{AgentChange, Engine};
use serde_json::{Map, Value};

pub(crate) use self::definition::{check_keys, remove_added};
use crate::definition_files::{Defined, DefinitionFiles, place};

/// The files and what was last seen of them.
pub(crate) type AgentFiles = DefinitionFiles<AgentDefinition>;

impl Defined for AgentDefinition {
    type Id = AgentId;
    const WHAT: &'static str = "an agent";

    fn parse(text: &str, path: &Path) -> Result<Self> {
        definition::parse(text, path)
    }

    /// A new agent, a new version, or nothing if it is so already.
    async fn put(self, engine: &Engine, id: &AgentId, text: &str, path: &Path) -> Result<()> {
        let tenant = TenantId::default_tenant();
        let current = match engine.agent(&tenant, id, None).await {
            Err(petasos_engine::Error::NotFound { .. }) => None,
            current => Some(current.with_context(|| path.display().to_string())?),
        };
        let agent = match &current {
            None => engine.create_agent(&tenant, Some(id.clone()), self).await,
            Some(current) => {
                let fields = replacing(&current.definition, &self)?;
                let change = AgentChange { fields, expected_version: None };
                engine.change_agent(&tenant, id, change).await
            }
        };
        let version = agent
            .map_err(|error| match &error {
                petasos_engine::Error::InvalidDefinition(invalid) => {
                    anyhow!("{}: {invalid}", place(text, path, &invalid.field))
                }
                _ => anyhow::Error::from(error).context(path.display().to_string()),
            })?
            .version;
        let changed = current.as_ref().is_none_or(|current| current.version != version);
        if changed {
            tracing::info!(agent = %id, version, file = %path.display(), "read an agent from its file");
        }
        match current {
            Some(current) if changed || is_newer(path, &current) => bring_back(engine, &current, path).await,
            Some(current) if current.archived_at.is_some() => {
                tracing::warn!(
                    agent = %id,
                    "an agent is archived although {} is there; write the file anew to bring it back, or remove it",
                    path.display()
                );
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Whether a file was written after its agent was archived.
fn is_newer(path: &Path, agent: &AgentVersion) -> bool {
    let written = path.metadata().and_then(|metadata| metadata.modified()).ok();
    let archived = agent.archived_at.map(SystemTime::from);
    archived.zip(written).is_some_and(|(archived, written)| written > archived)
}

/// Brings the agent of a file back if it is archived.
async fn bring_back(engine: &Engine, agent: &AgentVersion, path: &Path) -> Result<()> {
    if agent.archived_at.is_some() {
        engine.bring_agent_back(&TenantId::default_tenant(), &agent.id).await?;
        tracing::info!(agent = %agent.id, file = %path.display(), "brought an archived agent back");
    }
    Ok(())
}

/// The change that leaves nothing of `current`. Changes merge metadata by key, so keys that are gone are removed.
fn replacing(current: &AgentDefinition, definition: &AgentDefinition) -> Result<Map<String, Value>> {
    let mut fields = match serde_json::to_value(definition)? {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        for key in current.metadata.keys().filter(|key| !definition.metadata.contains_key(*key)) {
            metadata.insert(key.clone(), Value::Null);
        }
    }
    Ok(fields)
}
