//! Agents as files: every `agents/*.yaml` (or `.yml`, `.json`) of the home is an agent of the tenant `default`, and
//! the file's name is its id.
//!
//! A new file makes an agent, a changed one a new version. A broken file is a warning and leaves the version that
//! was there; a removed one leaves the agent as it is, since sessions may refer to it: archiving is a command. At a
//! start every file is read, so what was changed over HTTP in between is what the file says again.

mod definition;

use std::path::Path;

use anyhow::{Context, Result};
use petasos_core::agent::AgentDefinition;
use petasos_core::ids::{AgentId, TenantId};
use petasos_engine::{AgentChange, Engine};
use serde_json::{Map, Value};

use crate::definition_files::{Defined, DefinitionFiles};

/// The files and what was last seen of them.
pub(crate) type AgentFiles = DefinitionFiles<AgentDefinition>;

impl Defined for AgentDefinition {
    type Id = AgentId;
    const WHAT: &'static str = "an agent";

    fn parse(text: &str, path: &Path) -> Result<Self> {
        definition::parse(text, path)
    }

    /// A new agent, a new version, or nothing if it is so already.
    async fn put(self, engine: &Engine, id: &AgentId, _: &str, path: &Path) -> Result<()> {
        let tenant = TenantId::default_tenant();
        let (before, agent) = match engine.agent(&tenant, id, None).await {
            Err(petasos_engine::Error::NotFound { .. }) => {
                (0, engine.create_agent(&tenant, Some(id.clone()), self).await)
            }
            Ok(current) => {
                let fields = replacing(&current.definition, &self)?;
                let change = AgentChange { fields, expected_version: None };
                (current.version, engine.change_agent(&tenant, id, change).await)
            }
            Err(error) => (0, Err(error)),
        };
        let version = agent.with_context(|| path.display().to_string())?.version;
        if version != before {
            tracing::info!(agent = %id, version, file = %path.display(), "read an agent from its file");
        }
        Ok(())
    }
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
