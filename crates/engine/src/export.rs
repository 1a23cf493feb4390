//! A session on its way into a file, read a page at a time.

use std::sync::Arc;

use petasos_core::event::Event;
use petasos_core::export::{ExportHeader, Format};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::session::SessionRecord;
use petasos_store::{EventQuery, Order, Store};

use crate::engine::Engine;
use crate::error::{Error, Result};

/// Events that are in memory at the same time.
const PAGE: usize = 200;
/// The most bytes of them.
const MAX_BYTES: usize = 128 * 1024;

/// A session that is being exported, as it was when that began.
pub struct Export {
    /// What comes first.
    pub header: ExportHeader,
    store: Arc<dyn Store>,
    read: u64,
}

impl Export {
    /// The next events of the log, internal ones included; none at its end.
    pub async fn next_events(&mut self) -> Result<Vec<Event>> {
        let (id, last) = (&self.header.session.id, self.header.last_sequence);
        if self.read == last {
            return Ok(Vec::new());
        }
        let before = last.checked_add(1);
        let events = events(self.store.as_ref(), id, self.read, before, Vec::new(), PAGE).await?;
        self.read = match events.last() {
            Some(event) => event.sequence,
            None => return Err(Error::NotFound { kind: "session", id: id.to_string() }),
        };
        Ok(events)
    }
}

impl Engine {
    /// Begins to export a session.
    pub async fn export_session(&self, tenant: &TenantId, id: &SessionId) -> Result<Export> {
        let store = Arc::clone(&self.shared.store);
        let SessionRecord { header, view } = self.session(tenant, id).await?;
        let agent = self.agent(tenant, &header.agent_id, Some(header.agent_version)).await?;
        let was_set = async |name: &str| {
            let found = events(store.as_ref(), id, 0, None, vec![name.to_owned()], 1).await?;
            Result::Ok(!found.is_empty())
        };
        // What the session was created with is not kept once an event has replaced it, and then it does not matter.
        let title = if was_set("session.titled").await? { None } else { view.title };
        let changed = was_set("session.metadata_changed").await?;
        let metadata = if changed { serde_json::Map::new() } else { view.metadata };
        let header = ExportHeader {
            format: Format::current(),
            session: header,
            title,
            metadata,
            last_sequence: view.last_sequence,
            agent,
        };
        Ok(Export { header, store, read: 0 })
    }
}

async fn events(
    store: &dyn Store,
    id: &SessionId,
    after: u64,
    before: Option<u64>,
    types: Vec<String>,
    limit: usize,
) -> Result<Vec<Event>> {
    let (order, max_bytes) = (Order::Ascending, MAX_BYTES);
    let query = EventQuery { after: Some(after), before, types, order, limit, max_bytes };
    Ok(store.events(id, query).await?.events)
}
