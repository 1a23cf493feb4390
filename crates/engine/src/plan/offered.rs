//! Which tools a model is told about.

use std::sync::{Arc, LazyLock};

use petasos_core::agent::AgentDefinition;
use petasos_core::model::ToolSpec;
use petasos_core::run::EMIT_OUTPUT;
use petasos_core::settings::ServerTool as Setting;
use petasos_tools::mcp::{Missing, Offer, OfferedTool};
use petasos_tools::{Audience, Toolbox, all_names, clarify, delegate_task, request_secret};

use super::Planner;
use crate::routines::emit_output;

/// The tools that the engine carries out itself.
static OF_THE_ENGINE: LazyLock<[Arc<ToolSpec>; 3]> =
    LazyLock::new(|| [clarify::spec(), request_secret::spec(), delegate_task::spec()].map(Arc::new));

/// The tools of an agent that we carry out and that are of use there.
pub(crate) fn server_specs<'a>(
    agent: &AgentDefinition,
    tools: &'a Toolbox,
    audience: Audience,
) -> impl Iterator<Item = &'a Arc<ToolSpec>> {
    let all = OF_THE_ENGINE.iter().chain(tools.specs(audience));
    all.filter(move |spec| agent.has_builtin_tool(&all_names(&spec.name)))
}

/// For whom tools are chosen.
pub(crate) fn audience(user_id: Option<&str>, agent: &AgentDefinition) -> Audience {
    Audience { has_user: user_id.is_some(), has_skills: !agent.skills.is_empty() }
}

impl Planner<'_> {
    /// The tools that the model is told about. The order changes only with the settings.
    pub(crate) fn offered(&self) -> Vec<Arc<ToolSpec>> {
        let mut specs: Vec<Arc<ToolSpec>> = self.custom_tools().map(Arc::new).collect();
        let audience = audience(self.around.header.lasting_user(), &self.around.agent);
        let server = server_specs(&self.around.agent, &self.around.shared.tools, audience);
        let server: Vec<Arc<ToolSpec>> = server
            .filter(|spec| self.is_on(&spec.name))
            .filter(|spec| !specs.iter().any(|own| own.name == spec.name))
            .cloned()
            .collect();
        specs.extend(server);
        for tool in self.mcp.iter().filter(|tool| self.has_mcp_tool(tool)) {
            if !specs.iter().any(|other| other.name == tool.spec.name) {
                specs.push(Arc::clone(&tool.spec));
            }
        }
        if let Some(run) = &self.around.run {
            specs.retain(|spec| spec.name != EMIT_OUTPUT);
            specs.push(emit_output::spec(&run.job).into());
        }
        specs
    }

    /// A system prompt with what MCP servers say about the tools of theirs that the model has.
    pub(crate) fn with_instructions(&self, system: String) -> String {
        match self.mcp.instructions(|tool| self.has_mcp_tool(tool)) {
            Some(said) if system.is_empty() => said,
            Some(said) => format!("{system}\n\n{said}"),
            None => system,
        }
    }

    fn has_mcp_tool(&self, tool: &OfferedTool) -> bool {
        self.is_on(&tool.spec.name) && tool.is_enabled(&self.around.agent)
    }

    /// The tools that the application runs: those of the session, and those of the agent unless the session has a list
    /// of its own, or one of that name.
    pub(super) fn custom_tools(&self) -> impl Iterator<Item = ToolSpec> {
        let of_agent = self.around.agent.custom_tools();
        let of_agent = of_agent.filter(|(name, ..)| !self.around.settings.is_client_tool(name));
        let of_agent = of_agent.map(|(name, description, input_schema)| ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: input_schema.clone().into(),
        });
        let of_session = self.around.settings.client_tools.iter().map(|tool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            input_schema: tool.input_schema.clone().into(),
        });
        // The application knows nothing of subagents, and could not answer them; nor does anybody answer a run.
        let is_main = self.around.settings.thread.is_none() && self.around.run.is_none();
        let of_agent = (is_main && self.around.settings.server_tools.is_none()).then_some(of_agent);
        of_agent.into_iter().flatten().chain(of_session.filter(|_| self.around.run.is_none()))
    }

    /// Whether a tool that we carry out is there for this session.
    pub(super) fn is_on(&self, name: &str) -> bool {
        let for_thread = self.around.settings.thread.as_ref().is_none_or(|thread| {
            let listed = thread.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == name));
            listed && !delegate_task::NOT_FOR_SUBAGENTS.contains(&name)
        });
        let asks_nobody = self.is_attended() || ![clarify::NAME, request_secret::NAME].contains(&name);
        for_thread && asks_nobody && self.around.settings.server_tool(name) != Setting::Off
    }

    /// What a model is told that calls a tool that is not there.
    pub(super) fn unknown_tool(&self, name: &str) -> String {
        let offered = self.offered();
        let names: Vec<&str> = offered.iter().map(|spec| spec.name.as_str()).collect();
        let have = if names.is_empty() {
            "There are none.".to_owned()
        } else {
            format!("There are: {}.", names.join(", "))
        };
        let missing = missing_text(self.mcp).map(|text| format!(" {text}")).unwrap_or_default();
        format!("There is no tool {name}. {have}{missing}")
    }
}

/// What the model is told about MCP servers that cannot be used.
pub(crate) fn missing_text(offer: &Offer) -> Option<String> {
    let missing = offer.missing.iter().map(|missing| {
        let Missing { server, problem } = missing;
        format!("The MCP server {server} cannot be used now ({problem}); its tools are missing.")
    });
    let texts: Vec<String> = missing.collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}
