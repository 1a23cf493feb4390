//! Folds a session out of the store.

use std::sync::Arc;

use petasos_core::State;
use petasos_core::agent::AgentVersion;
use petasos_core::amendments::Amendments;
use petasos_core::context::Context;
use petasos_core::event::Event;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView};
use petasos_store::{Asleep, EventBatch, EventLog, EventQuery, LOG_BATCH_BYTES, Order, Result, Store};

use crate::error::Error;
use crate::warm::Fold;

const BATCH: usize = 500;

/// A session with the version of its agent.
pub(crate) struct Loaded {
    pub(crate) header: SessionHeader,
    pub(crate) agent: Option<AgentVersion>,
    pub(crate) state: State,
}

/// A session out of the store, in one read unless a lot came after its newest checkpoint.
pub(crate) async fn session(store: &dyn Store, tenant: &TenantId, id: &SessionId) -> Result<Option<Loaded>> {
    let Some(asleep) = store.asleep(tenant, id, BATCH).await? else { return Ok(None) };
    let Asleep { record, agent, checkpoint, events } = asleep;
    let stored = checkpoint.map(|checkpoint| serde_json::from_slice::<State>(&checkpoint.state));
    let state = match stored {
        // Without a checkpoint that reads, the whole log says the same, only slower.
        Some(Err(_)) => {
            let mut state = empty_state(&record);
            for_each_event(store, id, 0, None, |event| state.apply(event)).await?;
            state
        }
        Some(Ok(state)) => follow(store, state, &events).await?,
        None => follow(store, empty_state(&record), &events).await?,
    };
    Ok(Some(Loaded { header: record.header, agent, state }))
}

/// A session as its actor starts with it, out of the store.
pub(crate) async fn fold(
    store: &dyn Store,
    tenant: &TenantId,
    id: &SessionId,
) -> crate::error::Result<Option<Fold>> {
    let Some(Loaded { header, agent, state }) = session(store, tenant, id).await? else { return Ok(None) };
    let Some(agent) = agent else {
        return Err(Error::NotFound { kind: "agent", id: header.agent_id.to_string() });
    };
    let (header, agent) = (Arc::new(header), Arc::new(agent.definition));
    Ok(Some(Fold { header, agent, state, context: None }))
}

/// Applies what came after a state: events that are here already, and the rest if there is more.
async fn follow(store: &dyn Store, mut state: State, first: &EventBatch) -> Result<State> {
    first.events.iter().for_each(|event| state.apply(event));
    if first.has_more {
        let (id, after) = (state.session_id.clone(), state.view.last_sequence);
        for_each_event(store, &id, after, None, |event| state.apply(event)).await?;
    }
    Ok(state)
}

/// The state before the first event. The title and metadata that the session was created with are not events; if
/// they were changed since, the events that did so follow and win.
fn empty_state(record: &SessionRecord) -> State {
    let view =
        SessionView::new(record.header.created_at, record.view.title.clone(), record.view.metadata.clone());
    State::new(record.header.id.clone(), view)
}

/// What the model reads of a session whose log ends with `through`.
pub(crate) async fn context(store: &dyn Store, session_id: &SessionId, through: u64) -> Result<Context> {
    let mut context = Context::default();
    if through > 0 {
        let amendments = amendments(store, session_id).await?;
        let before = through.saturating_add(1);
        let apply = |event: &Event| {
            if !amendments.hide_from_model(event) {
                context.apply(event);
            }
        };
        for_each_event(store, session_id, 0, Some(before), apply).await?;
    }
    Ok(context)
}

/// What was changed about the entries of a log.
pub(crate) async fn amendments(log: &dyn EventLog, session_id: &SessionId) -> Result<Amendments> {
    let mut amendments = Amendments::default();
    log.amendments(session_id).await?.iter().for_each(|event| amendments.apply(event));
    Ok(amendments)
}

/// Goes through a part of a log, both ends included.
pub(crate) async fn part(
    store: &dyn Store,
    session_id: &SessionId,
    first: u64,
    last: u64,
    apply: impl FnMut(&Event),
) -> Result<()> {
    for_each_event(store, session_id, first.saturating_sub(1), Some(last.saturating_add(1)), apply).await
}

async fn for_each_event(
    store: &dyn Store,
    session_id: &SessionId,
    mut after: u64,
    before: Option<u64>,
    mut apply: impl FnMut(&Event),
) -> Result<()> {
    loop {
        let query = EventQuery {
            after: Some(after),
            before,
            types: Vec::new(),
            order: Order::Ascending,
            limit: BATCH,
            max_bytes: LOG_BATCH_BYTES,
        };
        let EventBatch { events, has_more } = store.events(session_id, query).await?;
        events.iter().for_each(&mut apply);
        match events.last() {
            Some(last) if has_more => after = last.sequence,
            _ => return Ok(()),
        }
    }
}
