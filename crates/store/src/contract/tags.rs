//! Tags, and what bears them.

use futures_util::future::BoxFuture;
use petasos_core::customer::Tag;
use petasos_core::ids::TenantId;

use crate::error::Result;

/// What can bear tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bearer {
    /// Agents.
    Agent,
    /// Customers.
    Customer,
    /// Context variables.
    Variable,
}

impl Bearer {
    /// The bearer as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Bearer::Agent => "agent",
            Bearer::Customer => "customer",
            Bearer::Variable => "variable",
        }
    }
}

/// The tags of every tenant.
pub trait TagStore: Send + Sync + 'static {
    /// All tags of a tenant, in the order in which they were made.
    fn tags<'a>(&'a self, tenant: &'a TenantId) -> BoxFuture<'a, Result<Vec<Tag>>>;

    /// Makes a tag. `AlreadyExists` if the tenant has one of that name.
    fn create_tag<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> BoxFuture<'a, Result<Tag>>;

    /// Gives a tag a new name. `false` if there is none, `AlreadyExists` if another has the name.
    fn rename_tag<'a>(&'a self, tenant: &'a TenantId, tag: Tag) -> BoxFuture<'a, Result<bool>>;

    /// Removes a tag, and from whatever bears it. `false` if there was none.
    fn delete_tag<'a>(&'a self, tenant: &'a TenantId, id: &'a str) -> BoxFuture<'a, Result<bool>>;

    /// Gives something tags and takes others away. Whether they are there is for the caller to know.
    fn change_tags<'a>(
        &'a self,
        tenant: &'a TenantId,
        bearer: (Bearer, &'a str),
        add: Vec<String>,
        remove: Vec<String>,
    ) -> BoxFuture<'a, Result<()>>;

    /// The tags of these, as pairs of bearer and tag. Those of customers and variables go with them.
    fn tags_of<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: Bearer,
        ids: Vec<String>,
    ) -> BoxFuture<'a, Result<Vec<(String, String)>>>;
}
