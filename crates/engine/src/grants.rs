//! Tools that a user allowed an agent for good, as applications list and revoke them.

use petasos_core::memory::UserScope;

use crate::engine::Engine;
use crate::error::{Error, Result};

impl Engine {
    /// The tools that an agent may use for a user without asking.
    pub async fn grants(&self, scope: &UserScope) -> Result<Vec<String>> {
        let UserScope { tenant, agent_id, user_id } = scope;
        self.agent(tenant, agent_id, None).await?;
        Ok(self.shared.store.grants(tenant, agent_id, user_id).await?)
    }

    /// Takes a grant back: the tool asks again.
    pub async fn revoke_grant(&self, scope: &UserScope, tool: &str) -> Result<()> {
        let UserScope { tenant, agent_id, user_id } = scope;
        self.agent(tenant, agent_id, None).await?;
        match self.shared.store.revoke_grant(tenant, agent_id, user_id, tool).await? {
            true => Ok(()),
            false => Err(Error::NotFound { kind: "grant", id: tool.to_owned() }),
        }
    }
}
