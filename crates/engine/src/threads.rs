//! The subagents of a session, as its log tells of them.

use jiff::Timestamp;
use petasos_core::event::{Payload, joined_text};
use petasos_core::ids::{SessionId, TenantId, ThreadId};

use crate::engine::Engine;
use crate::error::Result;
use crate::log_part::LogRange;

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
        let range = LogRange { types: types.to_vec(), ..LogRange::default() };
        let mut log = self.log_part(tenant, id, range).await?;
        while let Some(event) = log.next().await? {
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
        Ok(threads)
    }
}
