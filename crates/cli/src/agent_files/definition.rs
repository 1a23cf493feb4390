//! Reads the definition of an agent from the text of a file, and says in which line it is wrong.

use std::path::Path;

use anyhow::{Result, anyhow};
use petasos_core::agent::AgentDefinition;
use serde_json::{Map, Value};

use crate::definition_files::{self, place};
use crate::yaml;

/// What a definition may say.
const FIELDS: [&str; 8] =
    ["name", "model", "instructions", "tools", "mcpServers", "skills", "options", "metadata"];
/// What `petasos agents get --json` adds, so that its output can be kept as a file.
const ADDED: [&str; 5] = ["id", "version", "createdAt", "updatedAt", "archivedAt"];

/// Reads a definition.
pub(super) fn parse(text: &str, path: &Path) -> Result<AgentDefinition> {
    let keys: Map<String, Value> = definition_files::parse(text, path)?;
    check_keys(&keys, text, path)?;
    let definition: AgentDefinition = definition_files::parse(text, path)?;
    match definition.validate() {
        Ok(()) => Ok(definition),
        Err(invalid) => Err(anyhow!("{}: {invalid}", place(text, path, &invalid.field))),
    }
}

/// Takes out what the server adds to a definition and takes no orders about.
pub(crate) fn remove_added(keys: &mut Map<String, Value>) {
    keys.retain(|key, _| !ADDED.contains(&key.as_str()));
}

/// Refuses keys that mean nothing, and says which was probably meant.
pub(crate) fn check_keys(keys: &Map<String, Value>, text: &str, path: &Path) -> Result<()> {
    let is_known = |key: &str| FIELDS.contains(&key) || ADDED.contains(&key);
    match keys.keys().find(|key| !is_known(key)) {
        Some(key) => Err(anyhow!("{}: {}", place(text, path, key), yaml::unknown("key", key, &FIELDS))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(file: &str, text: &str) -> String {
        parse(text, Path::new(file)).unwrap_err().to_string()
    }

    #[test]
    fn yaml_and_json_are_read() {
        let agent = parse("name: A\nmodel: demo/echo\ninstructions: |\n  Be kind.\n", Path::new("a.yaml"));
        assert_eq!(agent.unwrap().instructions, "Be kind.\n");
        let agent = parse(r#"{"id":"a","version":3,"name":"A","model":"demo/echo"}"#, Path::new("a.json"));
        assert_eq!(agent.unwrap().name, "A");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        assert!(problem("a.yaml", "name: A\nmodel: [\n").starts_with("a.yaml:2:"));
        assert!(problem("a.yaml", "name: A\nmodel: 3\ntools: x\n").starts_with("a.yaml:3:"));
        assert!(problem("a.json", "{\n\"name\": 3}").starts_with("a.json:2:"));
        let text = problem("a.yaml", "name: A\nmodel: demo/echo\ninstruction: hi\n");
        assert!(
            text.starts_with("a.yaml:3: unknown key") && text.contains("did you mean instructions?"),
            "{text}"
        );
        let text = problem("a.yaml", "name: A\nmodel: echo\n");
        assert!(text.starts_with("a.yaml:2: model:") && text.contains("provider/model"), "{text}");
        assert!(problem("a.yaml", "name: A\n").contains("model"));
        assert!(problem("a.yaml", "").starts_with("a.yaml"));
    }
}
