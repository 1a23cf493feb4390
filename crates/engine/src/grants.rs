//! Permissions that users gave agents for good, as applications list and revoke them.

use petasos_core::ids::{AgentId, TenantId};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// A permission that a user gave an agent for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserGrant {
    /// The user who gave it.
    pub user_id: String,
    /// The permission, as [`petasos_core::grant::Grant`] reads it.
    pub text: String,
}

impl Engine {
    /// The permissions that an agent has from one user, or from all of them.
    pub async fn grants(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        user_id: Option<&str>,
    ) -> Result<Vec<UserGrant>> {
        self.agent(tenant, agent_id, None).await?;
        let all = match user_id {
            Some(user_id) => {
                let texts = self.shared.store.grants(tenant, agent_id, user_id).await?;
                texts.into_iter().map(|text| (user_id.to_owned(), text)).collect()
            }
            None => self.shared.store.agent_grants(tenant, agent_id).await?,
        };
        Ok(all.into_iter().map(|(user_id, text)| UserGrant { user_id, text }).collect())
    }

    /// Revokes a grant: the calls that it allowed ask again.
    pub async fn revoke_grant(&self, tenant: &TenantId, agent_id: &AgentId, grant: &UserGrant) -> Result<()> {
        let UserGrant { user_id, text } = grant;
        match self.shared.store.revoke_grant(tenant, agent_id, user_id, text).await? {
            true => Ok(()),
            false => Err(Error::NotFound { kind: "grant", id: text.clone() }),
        }
    }
}
