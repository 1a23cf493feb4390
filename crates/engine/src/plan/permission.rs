//! Whether a call may run: by the agent's policies, the session's settings, what was allowed before, and who is there.

use petasos_core::agent::{AgentDefinition, PermissionPolicy};
use petasos_core::event::Danger;
use petasos_core::grant::Grant;
use petasos_core::settings::ServerTool as Setting;
use petasos_core::step::Permission;
use petasos_tools::{Risk, Tool, all_names};
use serde_json::{Map, Value};

use super::Planner;
use crate::engine::Unattended;

/// What a run, or a session that nobody attends, is told about a call that a person would have to allow.
const NOBODY_ATTENDS: &str = "This needs a person's permission, and nobody attends this run. Do not try it another way: \
                              go on without it.";

/// What a subagent is told about a call that a person would have to allow.
const NOBODY_TO_ASK: &str = "This needs a person's permission, and a subagent has nobody to ask. Do not try it another \
                             way: say in your result what you would have done, and leave it to the agent you work for.";

/// Whether the agent's policies want a person asked before a tool runs.
pub(crate) fn asks_by_policy(agent: &AgentDefinition, name: &str, tool: &dyn Tool) -> bool {
    asks_unless_told(agent, name, tool.asks_by_default())
}

/// Whether a person is asked: as the agent's policies say, or else `by_default`.
fn asks_unless_told(agent: &AgentDefinition, name: &str, by_default: bool) -> bool {
    match agent.builtin_policy(&all_names(name)) {
        Some(PermissionPolicy::AlwaysAllow) => false,
        Some(PermissionPolicy::AlwaysAsk) => true,
        None => by_default,
    }
}

impl Planner<'_> {
    /// Whether a call of a built-in tool may run.
    pub(super) async fn permission(
        &self,
        name: &str,
        tool: &dyn Tool,
        input: &Map<String, Value>,
        risk: Risk,
        needs_password: bool,
    ) -> Permission {
        let permission = match risk {
            Risk::Forbidden { reason } => return Permission::Refuse(reason),
            Risk::Dangerous(danger) => {
                // What the session allows itself is left to the step, which knows of it; one call may have both.
                let allowed = |grant: &String| self.around.allowed.contains(grant);
                let rest: Vec<String> = danger.grants().filter(|grant| !allowed(grant)).collect();
                if !rest.is_empty() && self.are_granted(&rest).await {
                    Permission::Run
                } else {
                    Permission::AskAbout(danger)
                }
            }
            Risk::Harmless => self.by_policy(name, asks_unless_told(&self.around.agent, name, false)).await,
            Risk::Ordinary => self.by_policy(name, asks_by_policy(&self.around.agent, name, tool)).await,
        };
        let permission = self.unless_pattern_is_granted(name, tool, input, permission).await;
        match self.nobody() {
            Some(told) if needs_password => Permission::Refuse(told.to_owned()),
            _ => self.unless_nobody_is_there(name, permission),
        }
    }

    /// The same permission, unless a person allowed commands like this one and saw all of its dangers.
    async fn unless_pattern_is_granted(
        &self,
        name: &str,
        tool: &dyn Tool,
        input: &Map<String, Value>,
        permission: Permission,
    ) -> Permission {
        let danger = match &permission {
            Permission::Ask => None,
            Permission::AskAbout(danger) => Some(danger),
            Permission::Run | Permission::Refuse(_) => return permission,
        };
        let fits = |text: &String| {
            Grant::command(text).is_some_and(|grant| {
                grant.tool == name
                    && grant.covers(danger.into_iter().flat_map(Danger::pattern_keys))
                    && tool.fits_pattern(&grant.pattern, input)
            })
        };
        let of_parent = self.around.settings.thread.iter().flat_map(|thread| &thread.allowed);
        let for_session = self.around.allowed.iter().chain(of_parent).any(fits);
        if for_session || self.lasting_grants().await.iter().any(fits) { Permission::Run } else { permission }
    }

    /// The same permission, unless it wants somebody asked where nobody is.
    pub(super) fn unless_nobody_is_there(&self, name: &str, permission: Permission) -> Permission {
        let Some(told) = self.nobody() else { return permission };
        let grants = match &permission {
            Permission::Ask => vec![name.to_owned()],
            Permission::AskAbout(danger) => danger.grants().collect(),
            Permission::Run | Permission::Refuse(_) => return permission,
        };
        let by_parent = |grant: &String| {
            self.around.settings.thread.as_ref().is_some_and(|thread| thread.allowed.contains(grant))
        };
        if grants.iter().all(|grant| by_parent(grant) || self.around.allowed.contains(grant))
            || self.around.shared.unattended == Unattended::Allow
        {
            Permission::Run
        } else {
            Permission::Refuse(told.to_owned())
        }
    }

    /// What the model is told about a call that a person would have to allow, if nobody is there.
    fn nobody(&self) -> Option<&'static str> {
        match &self.around.settings.thread {
            Some(_) => Some(NOBODY_TO_ASK),
            None if self.is_attended() => None,
            None => Some(NOBODY_ATTENDS),
        }
    }

    /// Whether somebody could answer a question of the turn. A subagent's questions are not asked at all.
    pub(super) fn is_attended(&self) -> bool {
        self.around.run.is_none() && !self.around.settings.unattended
    }

    /// What the session's settings and the agent's policies say about a tool.
    pub(super) async fn by_policy(&self, name: &str, policy_asks: bool) -> Permission {
        let asks = match self.around.settings.server_tool(name) {
            Setting::Trusted => false,
            Setting::Untrusted => true,
            Setting::ByPolicy | Setting::Off => policy_asks,
        };
        if asks && !self.are_granted(&[name.to_owned()]).await { Permission::Ask } else { Permission::Run }
    }

    /// Whether the user allowed this agent these tools and dangers for good.
    async fn are_granted(&self, wanted: &[String]) -> bool {
        let granted = self.lasting_grants().await;
        wanted.iter().all(|tool| granted.contains(tool))
    }

    /// Everything that the user allowed this agent for good.
    async fn lasting_grants(&self) -> Vec<String> {
        let Some(user_id) = self.around.header.lasting_user() else { return Vec::new() };
        let header = &self.around.header;
        let grants = self.around.shared.store.grants(&header.tenant, &header.agent_id, user_id).await;
        // If the grants cannot be read, asking once too often is the safe side.
        grants.unwrap_or_default()
    }
}
