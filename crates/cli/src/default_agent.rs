//! The agent that conversations are with unless they name another. It is there from the first start on.

use anyhow::{Context, Result};
use petasos_core::agent::AgentDefinition;
use petasos_core::ids::{AgentId, TenantId};
use petasos_engine::{Engine, Error};
use serde_json::json;

/// Its id, which published clients of conversations expect.
const ID: &str = "interactiveAgent";
const INSTRUCTIONS: &str = "You help the users of a product. Be friendly, answer briefly, and say so when you do not know \
                            something.";

/// Makes the agent if there is none of its id, from a file or otherwise.
pub(crate) async fn ensure(engine: &Engine, model: &str) -> Result<()> {
    let (tenant, id): (_, AgentId) = (TenantId::default_tenant(), ID.parse()?);
    match engine.agent(&tenant, &id, None).await {
        Err(Error::NotFound { .. }) => {}
        found => return found.map(drop).context("look for the default agent"),
    }
    let definition = json!({ "name": "Interactive agent", "model": model, "instructions": INSTRUCTIONS });
    let definition: AgentDefinition = serde_json::from_value(definition)?;
    engine.create_agent(&tenant, Some(id), definition).await.context("make the default agent")?;
    Ok(())
}
