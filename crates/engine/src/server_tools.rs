//! What an agent can do before any session says otherwise.

use std::sync::Arc;

use petasos_core::agent::AgentDefinition;
use petasos_core::ids::TenantId;
use petasos_core::model::ToolSpec;
use petasos_tools::canonical_name;
use petasos_tools::mcp::Missing;

use crate::engine::Engine;
use crate::plan::{asks_by_policy, audience, server_specs};

/// The tools of an agent that we or MCP servers carry out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerTools {
    /// Those that are known.
    pub known: Vec<ServerTool>,
    /// MCP servers that have not said yet what they have.
    missing: Vec<Missing>,
}

/// A tool of an agent that we or an MCP server carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// How the model is told about it.
    pub spec: Arc<ToolSpec>,
    /// Whether the agent's policies let it run without asking.
    pub trusted: bool,
}

impl ServerTools {
    /// The name of the tool that is called so. A tool of a server that has not said yet what it has is taken on
    /// trust: if there is none, calls of it are refused.
    pub fn name<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let is_called = |tool: &&ServerTool| tool.spec.name == canonical_name(name);
        let known = self.known.iter().find(is_called).map(|tool| tool.spec.name.as_str());
        known.or_else(|| self.missing.iter().any(|server| server.could_have(name)).then_some(name))
    }
}

impl Engine {
    /// The tools of an agent that we or MCP servers carry out for a user, or for nobody in particular.
    pub async fn server_tools(
        &self,
        tenant: &TenantId,
        agent: &AgentDefinition,
        user_id: Option<&str>,
    ) -> ServerTools {
        let trusted = |spec: &ToolSpec| match self.shared.tools.get(&spec.name) {
            Some(tool) => !asks_by_policy(agent, &spec.name, tool.as_ref()),
            // A question is put to the user, and nobody is asked whether it may be.
            None => true,
        };
        let specs = server_specs(agent, &self.shared.tools, audience(user_id, agent));
        let mut known: Vec<ServerTool> =
            specs.map(|spec| ServerTool { trusted: trusted(spec), spec: Arc::clone(spec) }).collect();
        let offer = self.shared.tools.mcp().known(tenant, agent).await;
        let of_servers = offer
            .iter()
            .filter(|tool| tool.is_enabled(agent))
            .map(|tool| ServerTool { spec: Arc::clone(&tool.spec), trusted: !tool.asks_by_policy(agent) });
        known.extend(of_servers);
        ServerTools { known, missing: offer.missing.clone() }
    }

    /// The names that can stand before the slash of a model, sorted, each with what its provider speaks.
    pub fn providers(&self) -> Vec<(&str, &'static str)> {
        self.shared.models.provider_kinds()
    }

    /// Whether a model takes pictures.
    pub fn takes_images(&self, model: &str) -> bool {
        self.shared.models.takes_images(model)
    }
}
