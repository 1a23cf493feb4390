//! A chat gets a fresh session in place of the one that it had, or is done with it.

use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::session::SessionRecord;
use petasos_hooks::{HookEvent, Observation, TurnInfo};

use crate::engine::Engine;
use crate::error::Result;
use crate::observers;
use crate::sessions::NewSession;
use crate::turn_info::turn_info;

impl Engine {
    /// Makes a session in place of another. Hooks hear of the end of the old one, then that the new one is there, and
    /// of whatever happens in it after that. The old one stays as it is: whether it is put away is its channel's
    /// business.
    pub async fn replace_session(
        &self,
        tenant: &TenantId,
        old: Option<&SessionId>,
        agent_id: &AgentId,
        new: NewSession,
    ) -> Result<SessionRecord> {
        let record = self.create_session(tenant, agent_id, new).await?;
        let wants = |event| self.shared.hooks.wants(event);
        if !wants(HookEvent::OnSessionFinalize) && !wants(HookEvent::OnSessionReset) {
            return Ok(record);
        }
        let id = &record.header.id;
        if let Some(old) = old {
            let turn = self.outside_turns(tenant, old).await?;
            observers::tell(&self.shared, turn, Observation::SessionFinalize);
            observers::tell_after(&self.shared, id, old);
        }
        let turn = self.outside_turns(tenant, id).await?;
        let reset = Observation::SessionReset { old_session_id: old.cloned() };
        observers::tell(&self.shared, turn, reset);
        Ok(record)
    }

    /// Tells hooks that whoever talked in a session is done with it. The session stays as it is, and can be gone on
    /// with.
    pub async fn finalize_session(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionRecord> {
        let record = self.session(tenant, id).await?;
        if self.shared.hooks.wants(HookEvent::OnSessionFinalize) {
            let turn = self.outside_turns(tenant, id).await?;
            observers::tell(&self.shared, turn, Observation::SessionFinalize);
        }
        Ok(record)
    }

    /// What hooks are told of a session when none of its turns is what it is about.
    async fn outside_turns(&self, tenant: &TenantId, id: &SessionId) -> Result<TurnInfo> {
        let detail = self.session_detail(tenant, id).await?;
        let (header, model) = (&detail.header, detail.state.model(&detail.agent));
        Ok(turn_info(&self.shared, header, model, &header.id, String::new()))
    }
}
