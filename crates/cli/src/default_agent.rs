//! The agent that conversations are with unless they name another. It is there from the first start on.
//!
//! Its users are customers of a product, who can answer neither a request for permission nor a question of a tool. So it
//! has the tools that never ask, by name: a tool that is added later, by a plugin or a release, is not among them.

use anyhow::{Context, Result};
use petasos_core::agent::{AgentDefinition, AgentVersion, built_in_tools};
use petasos_core::ids::{AgentId, TenantId};
use petasos_engine::{AgentChange, Engine, Error};
use serde_json::{Map, Value, json};

/// Its id, which published clients of conversations expect.
const ID: &str = "interactiveAgent";
const NAME: &str = "Interactive agent";
const INSTRUCTIONS: &str = "You help the users of a product. Be friendly, answer briefly, and say so when you do not know \
                            something.";
/// Its tools. `web_extract` is missing because `approvals.web: ask` makes it ask.
const TOOLS: [&str; 9] = [
    "memory",
    "read_file",
    "search_files",
    "session_search",
    "skill_manage",
    "skill_view",
    "skills_list",
    "todo",
    "web_search",
];

/// Makes the agent if there is none of its id, from a file or otherwise. One that an earlier release made with all
/// tools, and that nobody has changed since, gets a version without those that ask.
pub(crate) async fn ensure(engine: &Engine, model: &str) -> Result<()> {
    let (tenant, id): (_, AgentId) = (TenantId::default_tenant(), ID.parse()?);
    match engine.agent(&tenant, &id, None).await {
        Err(Error::NotFound { .. }) => {}
        Ok(found) if is_of_earlier_release(&found) => {
            let fields = Map::from_iter([("tools".to_owned(), tools())]);
            let change = AgentChange { fields, expected_version: Some(found.version) };
            return engine
                .change_agent(&tenant, &id, change)
                .await
                .map(drop)
                .context("change the default agent");
        }
        found => return found.map(drop).context("look for the default agent"),
    }
    let definition = json!({ "name": NAME, "model": model, "instructions": INSTRUCTIONS, "tools": tools() });
    let definition: AgentDefinition = serde_json::from_value(definition)?;
    engine.create_agent(&tenant, Some(id), definition).await.context("make the default agent")?;
    Ok(())
}

/// Whether this is the first version, as it was made before the agent's tools were chosen.
fn is_of_earlier_release(agent: &AgentVersion) -> bool {
    let definition = &agent.definition;
    agent.version == 1
        && definition.name == NAME
        && definition.instructions == INSTRUCTIONS
        && definition.tools == built_in_tools()
}

fn tools() -> Value {
    let configs: Vec<Value> = TOOLS.iter().map(|name| json!({ "name": name, "enabled": true })).collect();
    json!([{ "type": "agent_toolset", "defaultConfig": { "enabled": false }, "configs": configs }])
}
