//! The subagents of a session, as its log tells of them.

use jiff::Timestamp;
use petasos_core::event::{Payload, joined_text};
use petasos_core::ids::{SessionId, TenantId, ThreadId};
use petasos_store::{EventQuery, Order};

use crate::engine::Engine;
use crate::error::Result;

/// How many events are read at once.
const BATCH: usize = 500;

/// A subagent of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadRecord {
    /// Names its log, which is read like that of any session.
    pub id: ThreadId,
    /// What it was told.
    pub task: String,
    /// What it said when it was done; none if it is not.
    pub result: Option<String>,
    /// When it was told.
    pub created_at: Timestamp,
}

impl Engine {
    /// The subagents of a session, oldest first.
    pub async fn threads(&self, tenant: &TenantId, id: &SessionId) -> Result<Vec<ThreadRecord>> {
        let types = ["agent.thread_message_sent", "agent.thread_message_received"].map(str::to_owned);
        let mut threads: Vec<ThreadRecord> = Vec::new();
        let mut after = 0;
        loop {
            let query = EventQuery {
                after: Some(after),
                before: None,
                types: types.to_vec(),
                order: Order::Ascending,
                limit: BATCH,
            };
            let events = self.events(tenant, id, query).await?;
            for event in &events {
                after = event.sequence;
                match &event.payload {
                    Payload::ThreadMessageSent(message) => threads.push(ThreadRecord {
                        id: message.thread_id.clone(),
                        task: joined_text(&message.content),
                        result: None,
                        created_at: event.created_at,
                    }),
                    Payload::ThreadMessageReceived(message) => {
                        let done = threads.iter_mut().find(|thread| thread.id == message.thread_id);
                        if let Some(thread) = done {
                            thread.result = Some(joined_text(&message.content));
                        }
                    }
                    _ => {}
                }
            }
            if events.len() < BATCH {
                return Ok(threads);
            }
        }
    }
}
