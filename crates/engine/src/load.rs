//! Folds a session out of the store.

use petasos_core::State;
use petasos_core::context::Context;
use petasos_core::event::Event;
use petasos_core::ids::SessionId;
use petasos_core::session::{SessionRecord, SessionView};
use petasos_store::{EventQuery, Order, Result, Store};

const BATCH: usize = 500;

/// The state of a session: the newest checkpoint, and what came after it.
pub(crate) async fn state(store: &dyn Store, record: &SessionRecord) -> Result<State> {
    let session_id = &record.header.id;
    let checkpoint = store.checkpoint(session_id).await?;
    let stored = checkpoint.and_then(|checkpoint| serde_json::from_slice::<State>(&checkpoint.state).ok());
    // Without a checkpoint that reads, the whole log says the same, only slower.
    let mut state = stored.unwrap_or_else(|| empty_state(record));
    for_each_event(store, session_id, state.view.last_sequence, |event| state.apply(event)).await?;
    Ok(state)
}

/// The state before the first event. The title and metadata that the session was created with are not events; if
/// they were changed since, the events that did so follow and win.
fn empty_state(record: &SessionRecord) -> State {
    let view =
        SessionView::new(record.header.created_at, record.view.title.clone(), record.view.metadata.clone());
    State::new(record.header.id.clone(), view)
}

/// What the model reads of a session.
pub(crate) async fn context(store: &dyn Store, session_id: &SessionId) -> Result<Context> {
    let mut context = Context::default();
    for_each_event(store, session_id, 0, |event| context.apply(event)).await?;
    Ok(context)
}

async fn for_each_event(
    store: &dyn Store,
    session_id: &SessionId,
    mut after: u64,
    mut apply: impl FnMut(&Event),
) -> Result<()> {
    loop {
        let query = EventQuery {
            after: Some(after),
            before: None,
            types: Vec::new(),
            order: Order::Ascending,
            limit: BATCH,
        };
        let events = store.events(session_id, query).await?;
        events.iter().for_each(&mut apply);
        match events.last() {
            Some(last) if events.len() == BATCH => after = last.sequence,
            _ => return Ok(()),
        }
    }
}
