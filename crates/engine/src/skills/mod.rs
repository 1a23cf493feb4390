//! Skills: instructions for a kind of task, loaded when they are needed.
//!
//! Configured skills belong to a version of an agent (`configured`); learned ones to an agent with a user
//! (`learned`), who never sees those of another. All are texts in the public Agent Skills format (`document`).

mod configured;
mod document;
mod learned;
mod list_tool;
mod manage_tool;
mod patch;
mod view_tool;

use std::path::PathBuf;
use std::sync::Arc;

use petasos_core::agent::{AgentDefinition, ConfiguredSkill};
use petasos_core::memory::{SkillSummary, UserScope};
use petasos_hooks::python::PluginSkill;
use petasos_store::Store;
use petasos_tools::{Audience, FilePool, Invocation, Toolbox};

use self::configured::Sources;
pub(crate) use self::view_tool::NAME as VIEW;
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Bounds of skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkillSettings {
    /// Skills that an agent may learn with one user.
    pub learned: usize,
    /// Characters of a `SKILL.md`.
    pub content_chars: usize,
    /// Files that come with a skill.
    pub files: usize,
    /// Bytes of one of them.
    pub file_bytes: usize,
    /// Characters of the index in the system prompt; descriptions are shortened to fit.
    pub index_chars: usize,
}

impl Default for SkillSettings {
    fn default() -> Self {
        SkillSettings {
            learned: 100,
            content_chars: 100_000,
            files: 50,
            file_bytes: 1024 * 1024,
            index_chars: 20_000,
        }
    }
}

/// Where skills come from and how large they may be.
#[derive(Default)]
pub struct SkillOptions {
    /// Bounds.
    pub settings: SkillSettings,
    /// The directory that skills with source `file` are in; none if there are no such skills.
    pub directory: Option<PathBuf>,
    /// What fetches skills with source `url`; it must be guarded. None if there are no such skills.
    pub client: Option<petasos_net::Client>,
    /// Skills that plugins bring. Agents load them by name; they are in no index of a prompt.
    pub of_plugins: Vec<PluginSkill>,
}

/// A skill in the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillLine {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// All skills.
pub(crate) struct Skills {
    store: Arc<dyn Store>,
    sources: Sources,
    of_plugins: Vec<PluginSkill>,
    pub(crate) settings: SkillSettings,
}

impl Skills {
    pub(crate) fn new(store: Arc<dyn Store>, options: SkillOptions, pool: FilePool) -> Self {
        let SkillOptions { settings, directory, client, of_plugins } = options;
        Skills { store, sources: Sources::new(settings, directory, client, pool), of_plugins, settings }
    }

    /// Adds the tools that use them.
    pub(crate) fn add_tools(self: &Arc<Self>, tools: &mut Toolbox) {
        tools.add(list_tool::SkillsList(Arc::clone(self)));
        tools.add(view_tool::SkillView(Arc::clone(self)));
        tools.add(manage_tool::SkillManage(Arc::clone(self)));
    }

    /// The index: configured skills in their order, then learned ones. One that cannot be read now is left out.
    pub(crate) async fn index(&self, agent: &AgentDefinition, learned: Vec<SkillSummary>) -> Vec<SkillLine> {
        let mut lines = Vec::new();
        for skill in &agent.skills {
            match self.sources.load(skill).await {
                Ok(loaded) => {
                    lines.push(SkillLine { name: skill.name.clone(), description: loaded.description });
                }
                Err(problem) => tracing::warn!(skill = skill.name, problem, "a skill cannot be offered"),
            }
        }
        let hidden = |name: &str| agent.skills.iter().any(|skill| skill.name == name);
        let learned = learned.into_iter().filter(|skill| !hidden(&skill.name));
        lines.extend(learned.map(|skill| SkillLine { name: skill.name, description: skill.description }));
        lines
    }

    /// Whether the tools are of use to somebody.
    fn are_of_use(&self, to: Audience) -> bool {
        to.has_user || to.has_skills || !self.of_plugins.is_empty()
    }

    /// The agent and the scope of the session that calls a tool.
    async fn whose(
        &self,
        invocation: &Invocation,
    ) -> std::result::Result<(AgentDefinition, Option<UserScope>), String> {
        let Invocation { tenant, session_id, .. } = invocation;
        let session = self.store.session(tenant, session_id).await.map_err(unreadable)?;
        let header = session.ok_or("The session is gone.")?.header;
        let agent = self.store.agent(tenant, &header.agent_id, Some(header.agent_version)).await;
        let agent = agent.map_err(unreadable)?.ok_or("The agent is gone.")?;
        Ok((agent.definition, UserScope::of(&header)))
    }
}

/// What a model is told when the store fails.
fn unreadable(error: petasos_store::Error) -> String {
    tracing::error!(%error, "skills could not be read or written");
    "The skills could not be reached; try again later.".to_owned()
}

impl Engine {
    /// Checks that the skills of a definition can be had, but for those of the version before.
    pub(crate) async fn check_skills(
        &self,
        definition: &AgentDefinition,
        before: &[ConfiguredSkill],
    ) -> Result<()> {
        for skill in definition.skills.iter().filter(|skill| !before.contains(skill)) {
            let loaded = self.shared.skills.sources.load(skill).await;
            loaded.map_err(|problem| Error::InvalidSkill { name: skill.name.clone(), problem })?;
        }
        Ok(())
    }
}
