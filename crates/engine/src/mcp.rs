//! The tools of MCP servers that an awake session has.
//!
//! They are found out when the session first needs them and then stay as they are: a list that changes in the middle
//! would cost the provider's cache of everything before it.

use std::sync::Arc;

use petasos_core::agent::AgentDefinition;
use petasos_core::session::SessionHeader;
use petasos_tools::Toolbox;
use petasos_tools::mcp::Offer;
use tokio::sync::OnceCell;

/// The tools of MCP servers that an awake session has. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct McpTools(Arc<OnceCell<Offer>>);

impl McpTools {
    /// All of them. The first to ask waits for the servers.
    pub(crate) async fn get(
        &self,
        tools: &Toolbox,
        header: &SessionHeader,
        agent: &AgentDefinition,
    ) -> &Offer {
        self.0.get_or_init(|| tools.mcp().offer(&header.tenant, agent)).await
    }
}
