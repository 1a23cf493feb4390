//! How sessions go for good, and what goes with them.
//!
//! A session's actor removes it, after what it has under way. One that is damaged has no actor: then everything goes
//! that can be found without its log.

use std::sync::Arc;

use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::SessionHeader;
use petasos_hooks::Observation;
use petasos_tools::SessionWorkspace;

use crate::actor::Command;
use crate::engine::{Engine, Shared};
use crate::error::{Error, Result};
use crate::routines::end_waiting_runs;
use crate::turn_info::turn_info;
use crate::{load, observers, own_workspace};

/// What the log says of a turn that is interrupted because its session goes. It is among the last that readers see.
pub const SESSION_DELETED: &str = "The session is deleted.";

impl Engine {
    /// Removes a session and its log for good. A turn under way is interrupted.
    pub async fn delete_session(&self, tenant: &TenantId, id: &SessionId) -> Result<()> {
        let deleted = match self.session(tenant, id).await {
            Ok(_) => self.command(tenant, id, |reply| Command::Delete { reply }).await,
            Err(error) => Err(error),
        };
        match deleted {
            // It cannot be woken, and this is how to get rid of it. Boxed, or what is rare would make all deletions large.
            Err(Error::Store(_)) if self.is_damaged(tenant, id).await => {
                Box::pin(self.delete_damaged(tenant, id)).await
            }
            deleted => deleted,
        }
    }

    /// Whether a session is there and cannot be read.
    pub(crate) async fn is_damaged(&self, tenant: &TenantId, id: &SessionId) -> bool {
        let read = load::session(self.shared.store.as_ref(), tenant, id).await;
        matches!(read, Err(petasos_store::Error::Damaged { .. }))
    }

    async fn delete_damaged(&self, tenant: &TenantId, id: &SessionId) -> Result<()> {
        // Whose files they are is part of it, and may be damaged too.
        let header = self.session(tenant, id).await.map(|record| record.header).ok();
        self.delete_threads(tenant, id).await;
        let own = header.as_ref().and_then(|header| own_workspace::of(header, id));
        if let Some(own) = &own {
            own_workspace::note_removal(&self.shared, own).await;
        }
        if !self.shared.store.delete_session(tenant, id).await? {
            return Err(Error::NotFound { kind: "session", id: id.to_string() });
        }
        if let Some(header) = &header {
            self.tell_finalized(header).await;
        }
        if let Some(own) = own {
            remove_files(&self.shared, own);
        }
        clear_up(&self.shared, tenant, id).await;
        Ok(())
    }

    async fn tell_finalized(&self, header: &SessionHeader) {
        let agent = self.agent(&header.tenant, &header.agent_id, Some(header.agent_version)).await;
        let model = agent.map(|agent| agent.definition.model).unwrap_or_default();
        let turn = turn_info(&self.shared, header, &model, &header.id, String::new());
        observers::tell(&self.shared, turn, Observation::SessionFinalize);
    }

    /// Removes the logs of a session's subagents. One that cannot be removed is an orphan, and does no harm.
    pub(crate) async fn delete_threads(&self, tenant: &TenantId, id: &SessionId) {
        for thread in self.threads(tenant, id).await.unwrap_or_default() {
            let deleted = Box::pin(self.delete_session(tenant, &thread.id.session_id())).await;
            if let Err(error) = deleted {
                tracing::warn!(thread_id = %thread.id, %error, "a subagent's log could not be removed");
            }
        }
    }
}

/// Ends the commands of a session that is gone, and removes its files once hooks, which run among them, were told of its
/// end. If the server stops before, the next start does it.
pub(crate) fn remove_files(shared: &Arc<Shared>, own: SessionWorkspace) {
    own_workspace::end_commands(shared, &own);
    let (session_id, removing) = (own.session_id.clone(), Arc::clone(shared));
    observers::after_told(shared, session_id, async move { own_workspace::remove(&removing, &own).await });
}

/// Lets go of what is kept of a session that is gone, and ends whatever waits for it.
pub(crate) async fn clear_up(shared: &Arc<Shared>, tenant: &TenantId, id: &SessionId) {
    end_waiting_runs(shared, tenant, id).await;
    shared.resting.forget(id);
    shared.recovery.set_aside.session_gone(tenant, id);
    shared.secrets.forget(id);
    shared.feeds.get(id).close();
}
