//! Following sessions as they go on.

use std::time::Duration;

use petasos_core::amendments::Amendments;
use petasos_core::event::{Payload, StopReason};
use petasos_core::ids::{SessionId, TenantId};
use petasos_store::{EventBatch, EventQuery, LOG_BATCH_BYTES, Order};

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::load;
use crate::reader::{Reader, Start};
use crate::sessions::SessionDetail;

/// How long readers gather what is said before they show more: often enough for the eye, and seldom enough that many
/// sessions with fast models do not spend their time on frames of a word each.
const PACE: Duration = Duration::from_millis(10);

/// How many pauses of a turn are looked at at once.
const PAUSES: usize = 16;

impl Engine {
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
        let amendments = match start {
            Start::Now => Amendments::default(),
            Start::After(_) => load::amendments(store.as_ref(), id).await?,
        };
        let reader = Reader::new(id.clone(), store, feed, start, record.view.last_sequence);
        Ok(reader.paced(PACE).amended(amendments))
    }

    /// Follows a session from where the caller saw it.
    pub fn follow_on(&self, seen: &SessionDetail) -> Result<Reader> {
        let (id, sequence) = (&seen.header.id, seen.state.view.last_sequence);
        let feed = self.shared.feeds.get(id);
        if self.shared.stopping.is_cancelled() {
            return Err(Error::ShuttingDown);
        }
        let store = self.shared.store.clone();
        Ok(Reader::new(id.clone(), store, feed, Start::After(sequence), sequence).paced(PACE))
    }

    /// Follows a session from the beginning of the turn that an event belongs to, for views that need to know how its
    /// turn came there. What is being said is left out.
    pub async fn follow_turns(&self, tenant: &TenantId, id: &SessionId, sequence: u64) -> Result<Reader> {
        let begins_after = self.turn_begins_after(id, sequence).await?;
        Ok(self.follow(tenant, id, Start::After(begins_after)).await?.without_live())
    }

    /// The end of the last turn before an event; 0 if there is none.
    async fn turn_begins_after(&self, id: &SessionId, sequence: u64) -> Result<u64> {
        let mut before = sequence;
        loop {
            let query = EventQuery {
                after: None,
                before: Some(before),
                types: vec!["session.status_idle".to_owned()],
                order: Order::Descending,
                limit: PAUSES,
                max_bytes: LOG_BATCH_BYTES,
            };
            let EventBatch { events: idle, has_more } = self.shared.store.events(id, query).await?;
            let ends = idle.iter().find(|event| match &event.payload {
                Payload::StatusIdle(idle) => !matches!(idle.stop_reason, StopReason::RequiresAction { .. }),
                _ => false,
            });
            match (ends, idle.last()) {
                (Some(end), _) => return Ok(end.sequence),
                (None, Some(oldest)) if has_more => before = oldest.sequence,
                (None, _) => return Ok(0),
            }
        }
    }
}
