//! Makes the things that the checks store.

use jiff::Timestamp;
use petasos_core::agent::AgentVersion;
use petasos_core::event::{AgentMessage, Block, Event, Payload, UserMessage};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::memory::UserScope;
use petasos_core::session::{SessionHeader, SessionRecord, SessionView, Status};
use serde_json::{Map, Value, json};

use crate::contract::{Append, Cursor, EventQuery, Order, Outbox, PageRequest};

/// A time that many nanoseconds after a fixed one, to be sure that nothing is rounded.
pub fn at(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(1_760_000_000_123_456_789 + i128::from(nanoseconds)).unwrap()
}

/// A tenant's id.
pub fn tenant(name: &str) -> TenantId {
    name.parse().unwrap()
}

/// An agent's id.
pub(super) fn agent_id(id: &str) -> AgentId {
    id.parse().unwrap()
}

/// A session's id.
pub(super) fn session_id(id: &str) -> SessionId {
    id.parse().unwrap()
}

/// An agent of a tenant with a user.
pub(super) fn scope(tenant_name: &str, agent: &str, user_id: &str) -> UserScope {
    UserScope { tenant: tenant(tenant_name), agent_id: agent_id(agent), user_id: user_id.into() }
}

/// Version 1 of an agent.
pub fn agent(tenant_name: &str, id: &str, created: i64) -> AgentVersion {
    let definition = json!({
        "name": format!("The {id}"), "model": "demo/echo", "instructions": "Be \"kind\".\n\u{0}ü",
        "tools": [{ "type": "agent_toolset" }], "metadata": { "weight": 0.1, "deep": { "a": [1, null] } },
    });
    AgentVersion {
        id: agent_id(id),
        tenant: tenant(tenant_name),
        version: 1,
        definition: serde_json::from_value(definition).unwrap(),
        created_at: at(created),
        updated_at: at(created),
        archived_at: None,
    }
}

/// A new session of the tenant `default`, the agent `helper` and no user.
pub fn session(id: &str, created: i64) -> SessionRecord {
    let header = SessionHeader {
        id: session_id(id),
        tenant: TenantId::default_tenant(),
        agent_id: agent_id("helper"),
        agent_version: 1,
        user_id: None,
        platform: "api".into(),
        created_at: at(created),
    };
    SessionRecord { header, view: SessionView::new(at(created), None, Map::new()) }
}

/// A new session with metadata.
pub(super) fn tagged(id: &str, created: i64, metadata: Value) -> SessionRecord {
    let mut session = session(id, created);
    session.view.metadata = serde_json::from_value(metadata).unwrap();
    session
}

/// A new session of a user.
pub(super) fn session_of(id: &str, user_id: &str) -> SessionRecord {
    let mut session = session(id, 0);
    session.header.user_id = Some(user_id.into());
    session
}

/// What a user says.
pub fn user_message(text: &str) -> Payload {
    Payload::UserMessage(UserMessage::new(vec![Block::text(text)]))
}

/// What an agent says.
pub(super) fn agent_message(text: &str) -> Payload {
    Payload::AgentMessage(AgentMessage { text: text.into() })
}

/// An append of these payloads after the event with sequence `after`. User events wait to be taken up.
pub fn append(id: &str, after: u64, payloads: Vec<Payload>) -> Append {
    let number = |payload: Payload, sequence: u64| {
        let created_at = at(1000 * i64::try_from(sequence).unwrap());
        let processed_at = (!payload.is_from_user()).then_some(created_at);
        Event { session_id: session_id(id), sequence, created_at, processed_at, payload }
    };
    let events: Vec<Event> =
        payloads.into_iter().zip(after + 1..).map(|(payload, sequence)| number(payload, sequence)).collect();
    let mut view = SessionView::new(at(0), None, Map::new());
    view.last_sequence = after + u64::try_from(events.len()).unwrap();
    Append {
        session_id: session_id(id),
        expected_sequence: after,
        events,
        view,
        checkpoint: None,
        outbox: Outbox::default(),
    }
}

/// An append that also starts or ends a turn.
pub(super) fn append_with_status(id: &str, after: u64, status: Status) -> Append {
    let mut append = append(id, after, vec![Payload::StatusRunning {}]);
    append.view.status = status;
    append
}

/// The whole log.
pub(super) fn whole() -> EventQuery {
    EventQuery {
        after: None,
        before: None,
        types: Vec::new(),
        order: Order::Ascending,
        limit: 1000,
        max_bytes: usize::MAX,
    }
}

/// A page of a listing.
pub(super) fn page(limit: usize, after: Option<Cursor>) -> PageRequest {
    PageRequest { after, limit }
}
