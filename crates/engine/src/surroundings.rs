//! What whoever works for a session has at hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use petasos_core::agent::AgentDefinition;
use petasos_core::budget::Allowances;
use petasos_core::model_settings::ModelSettings;
use petasos_core::session::{CONVERSATION_PLATFORM, SessionHeader};
use petasos_core::settings::SessionSettings;
use petasos_core::state::TurnRun;
use petasos_hooks::TurnInfo;

use crate::engine::Shared;
use crate::mcp::McpTools;
use crate::observers::ToldEnds;
use crate::plan::Planner;

/// What model calls and tool calls of one turn have in common. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) shared: Arc<Shared>,
    pub(crate) header: Arc<SessionHeader>,
    pub(crate) agent: Arc<AgentDefinition>,
    /// What the session sets for itself.
    pub(crate) settings: Arc<SessionSettings>,
    /// How often somebody let the turn go on over a budget.
    pub(crate) allowances: Allowances,
    /// What was allowed for the rest of the session.
    pub(crate) allowed: Arc<BTreeSet<String>>,
    /// The run that the turn is, if it is one.
    pub(crate) run: Option<Arc<TurnRun>>,
    pub(crate) mcp: McpTools,
    /// Calls whose end hooks were told.
    pub(crate) told: ToldEnds,
    pub(crate) turn: TurnInfo,
}

impl Surroundings {
    /// The model that the session talks to.
    pub(crate) fn model(&self) -> &str {
        self.settings.model.as_deref().unwrap_or(&self.agent.model)
    }

    /// How the model is asked.
    pub(crate) fn model_settings(&self) -> ModelSettings {
        self.settings.model_settings.over(&self.agent.model_settings)
    }

    /// Whether the log says when the text of a reply is on its way.
    pub(crate) fn shows_typing(&self) -> bool {
        self.header.platform == CONVERSATION_PLATFORM
    }

    /// Plans calls. The first one of an awake session waits for its MCP servers.
    pub(crate) async fn planner(&self) -> Planner<'_> {
        let mcp = self.mcp.get(&self.shared.tools, &self.header, &self.agent).await;
        Planner { around: self, mcp }
    }
}
