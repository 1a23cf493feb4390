//! Agents as files: every `agents/*.yaml` (or `.yml`, `.json`) of the home is an agent of the tenant `default`, and
//! the file's name is its id.
//!
//! A new file makes an agent, a changed one a new version. A broken file is a warning and leaves the version that
//! was there; a removed one leaves the agent as it is, since sessions may refer to it: archiving is a command. At a
//! start every file is read, so what was changed over HTTP in between is what the file says again.

mod definition;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use petasos_core::agent::AgentDefinition;
use petasos_core::ids::{AgentId, TenantId};
use petasos_engine::{AgentChange, Engine};
use serde_json::{Map, Value};

use crate::definition_files::{DefinitionFiles, POLL, list};

/// The files and what was last seen of them.
pub(crate) struct AgentFiles(DefinitionFiles);

impl AgentFiles {
    /// Names the directory, which need not be there.
    pub(crate) fn new(directory: PathBuf) -> Self {
        AgentFiles(DefinitionFiles::new(directory, "an agent"))
    }

    /// Reads the files that are new or changed since the last time, and makes the agents what they say.
    pub(crate) async fn sync(&mut self, engine: &Engine) {
        for (path, definition) in tokio::task::block_in_place(|| self.changed()) {
            let put = match definition {
                Ok((id, definition)) => put(engine, &id, definition, &path).await,
                Err(error) => Err(error),
            };
            if let Err(error) = put {
                tracing::warn!("an agent's file is not used: {error:#}");
            }
        }
    }

    /// Goes on looking for changes.
    pub(crate) async fn watch(mut self, engine: Engine) {
        loop {
            tokio::time::sleep(POLL).await;
            self.sync(&engine).await;
        }
    }

    /// What is new or changed, in the order of the names.
    fn changed(&mut self) -> Vec<(PathBuf, Result<(AgentId, AgentDefinition)>)> {
        let changed = self.0.changed().into_iter();
        changed.map(|definition| (definition.path.clone(), definition.read(definition::parse))).collect()
    }
}

/// Reads all files once: each with its agent's id, or what is wrong with it.
pub(crate) fn check(directory: &Path) -> Result<Vec<Result<AgentId>>> {
    list(directory)?;
    let mut files = AgentFiles::new(directory.to_owned());
    Ok(files.changed().into_iter().map(|(_, read)| read.map(|(id, _)| id)).collect())
}

/// Makes the agent what its file says: a new agent, a new version, or nothing if it is so already.
async fn put(engine: &Engine, id: &AgentId, definition: AgentDefinition, path: &Path) -> Result<()> {
    let tenant = TenantId::default_tenant();
    let (before, agent) = match engine.agent(&tenant, id, None).await {
        Err(petasos_engine::Error::NotFound { .. }) => {
            (0, engine.create_agent(&tenant, Some(id.clone()), definition).await)
        }
        Ok(current) => {
            let fields = replacing(&current.definition, &definition)?;
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const AGENT: &str = "name: A\nmodel: demo/echo\n";

    fn ids(files: &mut AgentFiles) -> Vec<String> {
        let shown = |read: Result<(AgentId, AgentDefinition)>| match read {
            Ok((id, definition)) => format!("{id}={}", definition.name),
            Err(error) => format!("{error:#}"),
        };
        files.changed().into_iter().map(|(_, read)| shown(read)).collect()
    }

    #[test]
    fn only_what_changed_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = AgentFiles::new(directory.path().join("agents"));
        assert!(ids(&mut files).is_empty());
        fs::create_dir(&files.0.directory).unwrap();
        let (a, b) = (files.0.directory.join("a.yaml"), files.0.directory.join("b.json"));
        fs::write(&a, AGENT).unwrap();
        fs::write(&b, r#"{"name":"B","model":"demo/echo"}"#).unwrap();
        fs::write(files.0.directory.join("notes.txt"), "no agent").unwrap();
        fs::write(files.0.directory.join(".hidden.yaml"), "no agent").unwrap();
        assert_eq!(ids(&mut files), ["a=A", "b=B"]);
        assert!(ids(&mut files).is_empty());
        fs::write(&a, "name: Another\nmodel: demo/echo\n").unwrap();
        assert_eq!(ids(&mut files), ["a=Another"]);
        // A file that is gone and comes back is read again.
        fs::remove_file(&b).unwrap();
        assert!(ids(&mut files).is_empty());
        fs::write(&b, r#"{"name":"C","model":"demo/echo"}"#).unwrap();
        assert_eq!(ids(&mut files), ["b=C"]);
    }

    #[test]
    fn names_that_cannot_be_used_are_told() {
        let directory = tempfile::tempdir().unwrap();
        let mut files = AgentFiles::new(directory.path().to_owned());
        fs::write(directory.path().join("a.json"), r#"{"name":"A","model":"demo/echo"}"#).unwrap();
        fs::write(directory.path().join("a.yaml"), AGENT).unwrap();
        fs::write(directory.path().join("my agent.yaml"), AGENT).unwrap();
        let read = ids(&mut files);
        assert_eq!(read[0], "a=A");
        assert!(read[1].contains("a.yaml: ") && read[1].contains("a.json has the same name"), "{read:?}");
        assert!(read[2].contains("my agent.yaml") && read[2].contains("rename the file"), "{read:?}");
    }
}
