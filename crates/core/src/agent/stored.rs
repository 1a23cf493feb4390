//! A definition as it is stored and exported.
//!
//! Earlier releases stored an empty `tools` for an agent with the built-in tools. Today an empty list is no tool at all,
//! and is stored with a mark that those releases did not write.

use std::ops::Not;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{AgentDefinition, built_in_tools};

/// A definition in the shape that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StoredDefinition(#[serde(with = "super::stored")] pub AgentDefinition);

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    definition: &'a AgentDefinition,
    #[serde(rename = "noTools", skip_serializing_if = "Not::not")]
    no_tools: bool,
}

#[derive(Deserialize)]
struct Read {
    #[serde(flatten)]
    definition: AgentDefinition,
    #[serde(default, rename = "noTools")]
    no_tools: bool,
}

pub(super) fn serialize<S: Serializer>(
    definition: &AgentDefinition,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    Written { definition, no_tools: definition.tools.is_empty() }.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentDefinition, D::Error> {
    let Read { mut definition, no_tools } = Read::deserialize(deserializer)?;
    if definition.tools.is_empty() && !no_tools {
        definition.tools = built_in_tools();
    }
    Ok(definition)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn stored(value: Value) -> AgentDefinition {
        let StoredDefinition(definition) = serde_json::from_value(value).unwrap();
        definition
    }

    #[test]
    fn an_empty_list_of_an_earlier_release_is_the_built_in_tools() {
        let definition =
            stored(json!({ "name": "a", "model": "a/b", "tools": [], "metadata": { "n": 1.5 } }));
        assert!(definition.has_builtin_tool(&["terminal"]));
        assert_eq!(definition.metadata["n"], 1.5);
    }

    #[test]
    fn what_is_stored_is_read_as_it_was() {
        for tools in [
            None,
            Some(json!([])),
            Some(json!([{ "type": "custom_tool", "name": "x" }])),
            Some(json!([{ "type": "agent_toolset", "configs": [{ "name": "todo", "enabled": false }] }])),
        ] {
            let mut written = json!({ "name": "a", "model": "a/b" });
            let is_none = tools == Some(json!([]));
            if let Some(tools) = tools {
                written["tools"] = tools;
            }
            let definition: AgentDefinition = serde_json::from_value(written).unwrap();
            assert_eq!(definition.tools.is_empty(), is_none);
            let text = serde_json::to_string(&StoredDefinition(definition.clone())).unwrap();
            assert_eq!(stored(serde_json::from_str(&text).unwrap()), definition);
        }
    }
}
