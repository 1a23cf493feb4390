//! Sessions as surfaces use them: created, listed, talked to, followed, put away.

use std::time::Duration;

use petasos_core::State;
use petasos_core::agent::metadata_problem;
use petasos_core::event::Event;
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use petasos_core::step::UserEvent;
use petasos_store::{EventQuery, Page, PageRequest, SessionFilter};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::actor::Command;
use crate::engine::{Engine, now};
use crate::error::{Error, Result};
use crate::load;
use crate::reader::{Reader, Start};

/// How long readers gather what is said before they show more: often enough for the eye, and seldom enough that many
/// sessions with fast models do not spend their time on frames of a word each.
const PACE: Duration = Duration::from_millis(10);

/// What a session is created with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewSession {
    /// The agent's version; the newest if none is named.
    pub agent_version: Option<u32>,
    /// With the agent's id, the scope of memory.
    pub user_id: Option<String>,
    /// A title; one is generated otherwise.
    pub title: Option<String>,
    /// The caller's own tags.
    pub metadata: Map<String, Value>,
    /// The surface or channel.
    pub platform: String,
}

/// What can be changed about a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionChange {
    /// A new title, or none at all.
    pub title: Option<Option<String>>,
    /// Metadata to merge; `null` removes a key.
    pub metadata: Option<Map<String, Value>>,
}

/// A session and where its turn stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionDetail {
    /// What never changes.
    pub header: SessionHeader,
    /// The fold of its log.
    pub state: State,
}

impl Engine {
    /// Keeps a new session with an agent.
    pub async fn create_session(
        &self,
        tenant: &TenantId,
        agent_id: &AgentId,
        new: NewSession,
    ) -> Result<SessionRecord> {
        if let Some(problem) = metadata_problem(&new.metadata) {
            return Err(Error::Invalid { field: "metadata".to_owned(), problem });
        }
        let newest = self.agent(tenant, agent_id, None).await?;
        if newest.archived_at.is_some() {
            return Err(Error::AgentArchived { id: agent_id.to_string() });
        }
        let agent = match new.agent_version {
            Some(version) if version != newest.version => self.agent(tenant, agent_id, Some(version)).await?,
            _ => newest,
        };
        let created_at = now();
        let header = SessionHeader {
            id: SessionId::from_uuid(Uuid::now_v7()),
            tenant: tenant.clone(),
            agent_id: agent_id.clone(),
            agent_version: agent.version,
            user_id: new.user_id,
            platform: new.platform,
            created_at,
        };
        let record = SessionRecord { header, view: SessionView::new(created_at, new.title, new.metadata) };
        self.shared.store.create_session(record.clone()).await?;
        Ok(record)
    }

    /// A session as it is listed.
    pub async fn session(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionRecord> {
        let record = self.shared.store.session(tenant, id).await?;
        record.ok_or_else(|| not_found(id))
    }

    /// A session and where its turn stands.
    pub async fn session_detail(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionDetail> {
        let loaded = load::session(self.shared.store.as_ref(), tenant, id).await?;
        let loaded = loaded.ok_or_else(|| not_found(id))?;
        Ok(SessionDetail { header: loaded.header, state: loaded.state })
    }

    /// A tenant's sessions, newest first.
    pub async fn sessions(
        &self,
        tenant: &TenantId,
        filter: SessionFilter,
        page: PageRequest,
    ) -> Result<Page<SessionRecord>> {
        Ok(self.shared.store.sessions(tenant, filter, page).await?)
    }

    /// Takes events from a person or application, all or none. They are durable when this returns.
    pub async fn send(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        events: Vec<UserEvent>,
    ) -> Result<Vec<Event>> {
        self.command(tenant, id, |reply| Command::Send { events, reply }).await
    }

    /// A part of a session's log.
    pub async fn events(&self, tenant: &TenantId, id: &SessionId, query: EventQuery) -> Result<Vec<Event>> {
        self.session(tenant, id).await?;
        Ok(self.shared.store.events(id, query).await?)
    }

    /// Follows a session.
    pub async fn follow(&self, tenant: &TenantId, id: &SessionId, start: Start) -> Result<Reader> {
        // Held before the log's length is read, so that nothing falls in between.
        let feed = self.shared.feeds.get(id);
        if self.shared.stopping.is_cancelled() {
            // The feeds that were there have been closed; nobody would close this one.
            return Err(Error::ShuttingDown);
        }
        let record = self.session(tenant, id).await?;
        let store = self.shared.store.clone();
        Ok(Reader::new(id.clone(), store, feed, start, record.view.last_sequence).paced(PACE))
    }

    /// Changes the title or metadata of a session.
    pub async fn change_session(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        change: SessionChange,
    ) -> Result<SessionRecord> {
        self.session(tenant, id).await?;
        let SessionChange { title, metadata } = change;
        self.command(tenant, id, |reply| Command::Change { title, metadata, reply }).await?;
        self.session(tenant, id).await
    }

    /// Puts a session away. A turn under way is interrupted.
    pub async fn archive_session(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionRecord> {
        self.session(tenant, id).await?;
        self.command(tenant, id, |reply| Command::Archive { reply }).await?;
        self.session(tenant, id).await
    }

    /// Removes a session and its log for good. A turn under way is interrupted.
    pub async fn delete_session(&self, tenant: &TenantId, id: &SessionId) -> Result<()> {
        match self.shared.store.session(tenant, id).await {
            // It cannot be woken, and this is how to get rid of it.
            Err(petasos_store::Error::Damaged { .. }) => {
                let found = self.shared.store.delete_session(tenant, id).await?;
                return if found { Ok(()) } else { Err(not_found(id)) };
            }
            found => drop(found?.ok_or_else(|| not_found(id))?),
        }
        self.command(tenant, id, |reply| Command::Delete { reply }).await
    }
}

fn not_found(id: &SessionId) -> Error {
    Error::NotFound { kind: "session", id: id.to_string() }
}
