//! Tags, and what bears them: agents, customers and context variables.

use std::collections::HashMap;

use petasos_core::customer::{FOR_AGENT, Tag};
use petasos_core::ids::TenantId;
use petasos_store::Bearer;

use crate::customers::{MAX_NAME_CHARS, check, named_already};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Tags to add and to take away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TagChange {
    /// Ids of tags that it gets.
    pub add: Vec<String>,
    /// Ids of tags that it loses.
    pub remove: Vec<String>,
}

impl Engine {
    /// All tags of a tenant.
    pub async fn tags(&self, tenant: &TenantId) -> Result<Vec<Tag>> {
        Ok(self.shared.store.tags(tenant).await?)
    }

    /// One tag.
    pub async fn tag(&self, tenant: &TenantId, id: &str) -> Result<Tag> {
        self.tags(tenant).await?.into_iter().find(|tag| tag.id == id).ok_or_else(|| no_tag(id))
    }

    /// Makes a tag.
    pub async fn create_tag(&self, tenant: &TenantId, name: &str) -> Result<Tag> {
        check("name", name, MAX_NAME_CHARS)?;
        let made = self.shared.store.create_tag(tenant, name).await;
        made.map_err(|error| named_already(error, "tag", name))
    }

    /// Gives a tag another name.
    pub async fn rename_tag(&self, tenant: &TenantId, tag: Tag) -> Result<Tag> {
        check("name", &tag.name, MAX_NAME_CHARS)?;
        let renamed = self.shared.store.rename_tag(tenant, tag.clone()).await;
        match renamed.map_err(|error| named_already(error, "tag", &tag.name))? {
            true => Ok(tag),
            false => Err(no_tag(&tag.id)),
        }
    }

    /// Removes a tag, and from whatever bears it.
    pub async fn delete_tag(&self, tenant: &TenantId, id: &str) -> Result<()> {
        if self.shared.store.delete_tag(tenant, id).await? { Ok(()) } else { Err(no_tag(id)) }
    }

    /// The tags of these, by bearer.
    pub async fn tags_of(
        &self,
        tenant: &TenantId,
        kind: Bearer,
        ids: Vec<String>,
    ) -> Result<HashMap<String, Vec<String>>> {
        let mut tags: HashMap<String, Vec<String>> = HashMap::new();
        for (bearer, tag) in self.shared.store.tags_of(tenant, kind, ids).await? {
            tags.entry(bearer).or_default().push(tag);
        }
        Ok(tags)
    }

    /// Refuses tags that are not there. `agent:` with the id of an agent is there with the agent.
    pub async fn check_tags(&self, tenant: &TenantId, ids: &[String]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let known = self.tags(tenant).await?;
        for id in ids {
            match id.strip_prefix(FOR_AGENT) {
                Some(agent_id) => {
                    let agent_id = agent_id.parse().map_err(|_| no_tag(id))?;
                    self.agent(tenant, &agent_id, None).await?;
                }
                None if known.iter().any(|tag| tag.id == *id) => {}
                None => return Err(no_tag(id)),
            }
        }
        Ok(())
    }

    /// Gives something tags and takes others away.
    pub async fn change_tags(
        &self,
        tenant: &TenantId,
        bearer: (Bearer, &str),
        change: TagChange,
    ) -> Result<()> {
        self.check_tags(tenant, &change.add).await?;
        if change == TagChange::default() {
            return Ok(());
        }
        Ok(self.shared.store.change_tags(tenant, bearer, change.add, change.remove).await?)
    }
}

fn no_tag(id: &str) -> Error {
    Error::NotFound { kind: "tag", id: id.to_owned() }
}
