//! Finds what was under way when the last process ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use petasos_core::event::Payload;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::recovery::WorkKind;
use petasos_store::{
    EventBatch, EventQuery, LOG_BATCH_BYTES, Order, WorkFound, WorkKey, WorkRecord, WorkState,
};

use super::set_aside::Entry;
use crate::engine::{Engine, Shared, now};
use crate::error::Result;
use crate::own_workspace;

/// The most work of one kind that is kept in mind. What comes after it moves up when this is dealt with.
const MOST: usize = 10_000;
/// How far back the calls of a turn are looked for.
const NEWEST_EVENTS: usize = 200;

/// Everything that this process is about to pick up by itself.
pub(super) async fn work_under_way(shared: &Arc<Shared>) -> Result<Vec<WorkFound>> {
    let mut found = shared.store.work_under_way(now(), MOST).await?;
    found.extend(own_workspace::noted(shared).await.into_iter().map(|own| WorkFound {
        key: WorkKey { kind: WorkKind::Removal, tenant: own.tenant, id: own.session_id.to_string() },
        session_id: Some(own.session_id),
        position: "files".to_owned(),
    }));
    found.extend(Engine { shared: Arc::clone(shared) }.due_schedules().await?);
    Ok(found)
}

/// The records, and one for messages that the store does not index by itself any more.
pub(super) async fn with_index(
    shared: &Shared,
    mut records: Vec<WorkRecord>,
    at: Timestamp,
) -> Result<Vec<WorkRecord>> {
    if shared.store.index_is_set_aside().await? {
        let key =
            WorkKey { kind: WorkKind::Index, tenant: TenantId::default_tenant(), id: "messages".to_owned() };
        records.push(WorkRecord {
            found: WorkFound { key, session_id: None, position: String::new() },
            starts: 0,
            state: WorkState::Waiting,
            told_before: false,
            since: at,
        });
    }
    Ok(records)
}

/// What has to be known about a piece of work besides its record.
pub(super) async fn entry(shared: &Shared, record: WorkRecord) -> Entry {
    let key = record.found.key.clone();
    let mut entry = Entry::new(record);
    match (key.kind, &entry.record.found.session_id) {
        (WorkKind::ToolCall, Some(session_id)) if entry.record.state == WorkState::Told => {
            entry.calls = open_calls(shared, session_id).await;
        }
        (WorkKind::Delivery, _) => {
            let Ok(id) = key.id.parse() else { return entry };
            let delivery = shared.store.delivery(&key.tenant, &id).await.ok().flatten();
            entry.lane = delivery.map(|delivery| delivery.lane().to_owned());
        }
        _ => {}
    }
    entry
}

/// The tool calls of a session that have started and not ended. Empty if that cannot be read.
async fn open_calls(shared: &Shared, session_id: &SessionId) -> Vec<String> {
    let types = ["tool.started", "agent.tool_result", "agent.mcp_tool_result", "span.model_finished"];
    let mut query = EventQuery {
        after: None,
        before: None,
        types: types.map(str::to_owned).to_vec(),
        order: Order::Descending,
        limit: NEWEST_EVENTS,
        max_bytes: LOG_BATCH_BYTES,
    };
    let (mut ended, mut open) = (BTreeSet::new(), Vec::new());
    'log: while query.limit > 0 {
        let Ok(EventBatch { events, has_more }) = shared.store.events(session_id, query.clone()).await else {
            return Vec::new();
        };
        for event in &events {
            match &event.payload {
                Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                    ended.insert(result.tool_use_id.clone());
                }
                Payload::ToolStarted(started) if !ended.contains(&started.tool_use_id) => {
                    open.push(started.tool_use_id.to_string());
                }
                Payload::ModelFinished(_) => break 'log,
                _ => {}
            }
        }
        // Results may be too large to be read at once.
        query.before = events.last().filter(|_| has_more).map(|last| last.sequence);
        query.limit = if query.before.is_some() { query.limit - events.len() } else { 0 };
    }
    open.reverse();
    open
}
