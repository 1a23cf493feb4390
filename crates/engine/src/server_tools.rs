//! What an agent can do before any session says otherwise.

use petasos_core::agent::AgentDefinition;
use petasos_core::model::ToolSpec;
use petasos_tools::canonical_name;

use crate::engine::Engine;
use crate::plan::{asks_by_policy, audience, server_specs};

/// A tool of an agent that we carry out.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerTool {
    /// How the model is told about it.
    pub spec: ToolSpec,
    /// Whether the agent's policies let it run without asking.
    pub trusted: bool,
}

impl ServerTool {
    /// Whether this is one of its names.
    pub fn is_called(&self, name: &str) -> bool {
        canonical_name(name) == self.spec.name
    }
}

impl Engine {
    /// The tools of an agent that we carry out for a user, or for nobody in particular.
    pub fn server_tools(&self, agent: &AgentDefinition, user_id: Option<&str>) -> Vec<ServerTool> {
        let trusted = |spec: &ToolSpec| match self.shared.tools.get(&spec.name) {
            Some(tool) => !asks_by_policy(agent, &spec.name, tool.as_ref()),
            // A question is put to the user, and nobody is asked whether it may be.
            None => true,
        };
        let specs = server_specs(agent, &self.shared.tools, audience(user_id, agent));
        specs.map(|spec| ServerTool { trusted: trusted(&spec), spec }).collect()
    }

    /// Whether a model takes pictures.
    pub fn takes_images(&self, model: &str) -> bool {
        self.shared.models.takes_images(model)
    }
}
