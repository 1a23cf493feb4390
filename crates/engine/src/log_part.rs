//! A session's log as surfaces read it: without what was deleted, and never in memory as a whole.

use std::sync::Arc;
use std::vec;

use petasos_core::amendments::Amendments;
use petasos_core::event::Event;
use petasos_core::ids::{SessionId, TenantId};
use petasos_store::{EventBatch, EventQuery, Order, Store};

use crate::engine::Engine;
use crate::error::Result;
use crate::load;

/// The most bytes of events that wait in memory to be taken: a client that does not read may leave them there.
const MAX_BYTES: usize = 128 * 1024;
/// How many events are read at once where all are wanted.
const BATCH: usize = 256;

/// Which part of a log is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogRange {
    /// Only events with a higher sequence.
    pub after: Option<u64>,
    /// Only events with a lower sequence.
    pub before: Option<u64>,
    /// Only these type names; empty for all.
    pub types: Vec<String>,
    /// Oldest or newest first.
    pub order: Order,
    /// How many are likely to be taken. The store looks for no more at once.
    pub likely: usize,
}

impl Default for LogRange {
    fn default() -> Self {
        LogRange { after: None, before: None, types: Vec::new(), order: Order::Ascending, likely: BATCH }
    }
}

/// A part of a session's log, read a few events at a time.
pub struct LogPart {
    store: Arc<dyn Store>,
    session_id: SessionId,
    amendments: Amendments,
    /// What is left out.
    hides: fn(&Amendments, &Event) -> bool,
    /// What is read next; none at the end.
    next: Option<EventQuery>,
    waiting: vec::IntoIter<Event>,
}

impl LogPart {
    /// The next event; none at the end.
    pub async fn next(&mut self) -> Result<Option<Event>> {
        loop {
            if let Some(event) = self.waiting.by_ref().find(|event| !(self.hides)(&self.amendments, event)) {
                return Ok(Some(event));
            }
            let Some(query) = self.next.take() else { return Ok(None) };
            let EventBatch { events, has_more } = self.store.events(&self.session_id, query.clone()).await?;
            self.next = events.last().filter(|_| has_more).map(|last| match query.order {
                Order::Ascending => EventQuery { after: Some(last.sequence), ..query },
                Order::Descending => EventQuery { before: Some(last.sequence), ..query },
            });
            self.waiting = events.into_iter();
        }
    }
}

impl Engine {
    /// A part of a session's log, without what was deleted.
    pub async fn log_part(&self, tenant: &TenantId, id: &SessionId, range: LogRange) -> Result<LogPart> {
        let hides = |amendments: &Amendments, event: &Event| amendments.hide(event.sequence);
        self.part(tenant, id, range, hides).await
    }

    /// A part of a session's log, without what a model must not read.
    pub(crate) async fn log_for_model(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        range: LogRange,
    ) -> Result<LogPart> {
        self.part(tenant, id, range, Amendments::hide_from_model).await
    }

    async fn part(
        &self,
        tenant: &TenantId,
        id: &SessionId,
        range: LogRange,
        hides: fn(&Amendments, &Event) -> bool,
    ) -> Result<LogPart> {
        self.session(tenant, id).await?;
        let store = Arc::clone(&self.shared.store);
        let amendments = load::amendments(store.as_ref(), id).await?;
        let LogRange { after, before, types, order, likely } = range;
        let (limit, max_bytes) = (likely.clamp(1, BATCH), MAX_BYTES);
        let next = Some(EventQuery { after, before, types, order, limit, max_bytes });
        let (session_id, waiting) = (id.clone(), Vec::new().into_iter());
        Ok(LogPart { store, session_id, amendments, hides, next, waiting })
    }
}
