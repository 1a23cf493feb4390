//! Who is talked to: the named agent, or one that was made for a model.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::api::{Api, path};

/// The tag of the agents that are made here.
const TAG: &str = "petasos-cli";
/// How many agents are looked through for one that was made before.
const MAX_AGENTS: usize = 10_000;
const INSTRUCTIONS: &str = "You talk to a person in a terminal. Answer in plain text, without Markdown.";

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partner {
    /// Its id.
    pub(crate) agent_id: String,
    /// What people call it.
    pub(crate) name: String,
    /// Its model.
    pub(crate) model: String,
}

impl Partner {
    /// The agent of this id.
    pub(crate) async fn named(api: &Api, agent_id: &str) -> Result<Partner> {
        Ok(Partner::from_agent(agent_id, &api.get(&path(&["agents", agent_id]), &[]).await?))
    }

    /// The agent for a model: the one that was made for it before, or a new one.
    pub(crate) async fn for_model(api: &Api, model: &str) -> Result<Partner> {
        let agents = api.list(&path(&["agents"]), &[], MAX_AGENTS).await?;
        let ours = |agent: &&Value| agent["metadata"]["madeBy"] == TAG && agent["model"] == model;
        let agent = match agents.data.iter().find(ours) {
            Some(agent) => agent.clone(),
            None => {
                let definition = json!({
                    "name": format!("Command line, {model}"),
                    "model": model,
                    "instructions": INSTRUCTIONS,
                    "metadata": { "madeBy": TAG },
                });
                api.post(&path(&["agents"]), &definition).await?
            }
        };
        let agent_id = agent["id"].as_str().context("the server's answer has no id")?;
        Ok(Partner::from_agent(agent_id, &agent))
    }

    /// Reads an agent as the server shows it.
    pub(crate) fn from_agent(agent_id: &str, agent: &Value) -> Partner {
        let text = |name: &str| agent[name].as_str().unwrap_or_default().to_owned();
        Partner { agent_id: agent_id.to_owned(), name: text("name"), model: text("model") }
    }
}
