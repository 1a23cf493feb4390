//! Sessions as surfaces use them: created, listed, talked to, put away.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::ready;
use futures_util::{Stream, StreamExt, stream};
use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::amendments::Amendments;
use petasos_core::conversation::{ConversationChange, LabelChange};
use petasos_core::event::{Event, Payload};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::metadata::metadata_problem;
use petasos_core::model_settings::ModelSettingsChange;
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use petasos_core::settings::SessionSettings;
use petasos_core::step::UserEvent;
use petasos_store::{Append, Outbox, Page, PageRequest, SessionFilter};
use secrecy::SecretString;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::actor::Command;
use crate::engine::{Engine, now};
use crate::error::{Error, Result};
use crate::load;
use crate::warm::Fold;

/// How many sessions of a list are folded at the same time.
const AT_ONCE: usize = 8;

/// What a session is created with.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// Its id; one is made otherwise.
    pub id: Option<SessionId>,
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
    /// What the session sets for itself.
    pub settings: Option<SessionSettings>,
    /// A conversation that it begins with, as the entries of its log.
    pub seed: Vec<Payload>,
    /// Values of secret options, by name. They are kept in memory only.
    pub secrets: BTreeMap<String, SecretString>,
}

/// What is sent to a session together: all of it is taken, or nothing.
#[derive(Debug, Clone, Default)]
pub struct Submission {
    /// Events from a person or application, in order.
    pub events: Vec<UserEvent>,
    /// Values of secret options, by name. They are kept in memory only.
    pub secrets: BTreeMap<String, SecretString>,
    /// Passwords and secrets that were asked for, by request. They are kept in memory only.
    pub answers: BTreeMap<String, SecretString>,
    /// The last event that the caller knows of. If there are more by now, nothing is taken.
    pub expected_sequence: Option<u64>,
}

/// What can be changed about a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionChange {
    /// A new title, or none at all.
    pub title: Option<Option<String>>,
    /// Metadata to merge; `null` removes a key.
    pub metadata: Option<Map<String, Value>>,
    /// Who answers, and what the application has read.
    pub conversation: Option<ConversationChange>,
    /// Labels to add to those that are there, and to take away.
    pub labels: Option<LabelChange>,
    /// A model in place of the agent's; `None` inside takes it back.
    pub model: Option<Option<String>>,
    /// What the session puts over the agent's model settings.
    pub model_settings: Option<ModelSettingsChange>,
}

/// A session and where its turn stands.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionDetail {
    /// What never changes.
    pub header: SessionHeader,
    /// The agent, in the version that it stays with.
    pub agent: Arc<AgentDefinition>,
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
        self.shared.deliveries.check_metadata(&new.metadata)?;
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
            id: new.id.unwrap_or_else(|| SessionId::from_uuid(Uuid::now_v7())),
            tenant: tenant.clone(),
            agent_id: agent_id.clone(),
            agent_version: agent.version,
            user_id: new.user_id,
            platform: new.platform,
            created_at,
        };
        let record = SessionRecord { header, view: SessionView::new(created_at, new.title, new.metadata) };
        let settings = new.settings.map(Payload::SettingsChanged);
        let mut log = first_events(&record, settings.into_iter().chain(new.seed));
        log.outbox = self.shared.deliveries.first(&record.header, &agent.definition, &log);
        if log.events.is_empty() {
            self.shared.store.create_session(record.clone()).await?;
        } else {
            self.shared.store.import_session(record.clone(), log).await?;
            self.shared.deliveries.wake();
        }
        self.shared.secrets.keep(&record.header.id, new.secrets);
        Ok(record)
    }

    /// A session as it is listed.
    pub async fn session(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionRecord> {
        let record = self.shared.store.session(tenant, id).await?;
        record.ok_or_else(|| not_found(id))
    }

    /// A session and where its turn stands.
    pub async fn session_detail(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionDetail> {
        if let Some(detail) = self.shared.warm.look(tenant, id) {
            return Ok(detail);
        }
        let fold = load::fold(self.shared.store.as_ref(), tenant, id).await?;
        let Fold { header, agent, state, .. } = fold.ok_or_else(|| not_found(id))?;
        Ok(SessionDetail { header: Arc::unwrap_or_clone(header), agent, state })
    }

    /// Sessions of a list and where their turns stand, a few at a time. One that was deleted in the meantime is left out.
    pub fn session_details(
        &self,
        tenant: &TenantId,
        listed: Vec<SessionRecord>,
    ) -> impl Stream<Item = Result<SessionDetail>> + Send + use<> {
        let (engine, tenant) = (self.clone(), tenant.clone());
        let folding = stream::iter(listed).map(move |record| {
            let (engine, tenant) = (engine.clone(), tenant.clone());
            async move { engine.session_detail(&tenant, &record.header.id).await }
        });
        let is_there = |detail: &Result<SessionDetail>| !matches!(detail, Err(Error::NotFound { .. }));
        folding.buffered(AT_ONCE).filter(move |detail| ready(is_there(detail)))
    }

    /// A tenant's sessions, in the order that the filter names.
    pub async fn sessions(
        &self,
        tenant: &TenantId,
        filter: SessionFilter,
        page: PageRequest,
    ) -> Result<Page<SessionRecord>> {
        Ok(self.shared.store.sessions(tenant, filter, page).await?)
    }

    /// How many sessions of a tenant a filter lets through.
    pub async fn count_sessions(&self, tenant: &TenantId, filter: SessionFilter) -> Result<u64> {
        Ok(self.shared.store.count_sessions(tenant, filter).await?)
    }

    /// Takes events from a person or application, all or none. They are durable when this returns.
    pub async fn send(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        events: Vec<UserEvent>,
    ) -> Result<Vec<Event>> {
        self.submit(tenant, id, Submission { events, ..Submission::default() }).await
    }

    /// Takes what a person or application sends, all or nothing. It is durable when this returns. The answer holds the
    /// user events of the log that it became.
    pub async fn submit(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        submission: Submission,
    ) -> Result<Vec<Event>> {
        self.command(tenant, id, |reply| Command::Send { submission, reply }).await
    }

    /// What was changed about the entries of a session's log.
    pub async fn amendments(&self, tenant: &TenantId, id: &SessionId) -> Result<Amendments> {
        self.session(tenant, id).await?;
        Ok(load::amendments(self.shared.store.as_ref(), id).await?)
    }

    /// Changes what is noted about a session, all or nothing.
    pub async fn change_session(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        change: SessionChange,
    ) -> Result<SessionRecord> {
        self.session(tenant, id).await?;
        self.command(tenant, id, |reply| Command::Change { change, reply }).await?;
        self.session(tenant, id).await
    }

    /// Puts a session away. A turn under way is interrupted.
    pub async fn archive_session(&self, tenant: &TenantId, id: &SessionId) -> Result<SessionRecord> {
        self.session(tenant, id).await?;
        self.command(tenant, id, |reply| Command::Archive { reply }).await?;
        self.session(tenant, id).await
    }
}

/// The log that a session begins with.
fn first_events(record: &SessionRecord, payloads: impl Iterator<Item = Payload>) -> Append {
    let at = record.header.created_at;
    let mut state = State::new(record.header.id.clone(), record.view.clone());
    let events: Vec<Event> = (1..)
        .zip(payloads)
        .map(|(sequence, payload)| Event {
            session_id: record.header.id.clone(),
            sequence,
            created_at: at,
            processed_at: Some(at),
            payload,
        })
        .collect();
    events.iter().for_each(|event| state.apply(event));
    Append {
        session_id: record.header.id.clone(),
        expected_sequence: 0,
        events,
        checkpoint: serde_json::to_vec(&state).ok(),
        view: state.view,
        outbox: Outbox::default(),
    }
}

fn not_found(id: &SessionId) -> Error {
    Error::NotFound { kind: "session", id: id.to_string() }
}
