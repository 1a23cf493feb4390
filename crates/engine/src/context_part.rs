//! What the model would read of a session, message by message, without holding all of it in memory.

use std::collections::VecDeque;

use petasos_core::context::Context;
use petasos_core::event::Payload;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::model::{Message, ToolOutcome};
use petasos_store::Order;

use crate::engine::Engine;
use crate::error::Result;
use crate::log_part::{LogPart, LogRange};

/// What the model would read of a session, as of when it was asked for.
pub struct ContextPart {
    /// None when it is read to its end.
    system: Option<LogPart>,
    /// None when it is read to its end.
    log: Option<LogPart>,
    context: Context,
    /// The newest compaction. Until then messages may still be replaced by a summary.
    compacted_at: u64,
    ready: VecDeque<Message>,
}

impl ContextPart {
    /// The next system message that came with the session; none after the last.
    pub async fn next_system_message(&mut self) -> Result<Option<String>> {
        while let Some(log) = &mut self.system {
            match log.next().await?.map(|event| event.payload) {
                Some(Payload::SystemMessage(message)) => return Ok(Some(message.text)),
                Some(_) => {}
                None => self.system = None,
            }
        }
        Ok(None)
    }

    /// The next message; none after the last.
    pub async fn next(&mut self) -> Result<Option<Message>> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(Some(message));
            }
            let Some(log) = &mut self.log else { return Ok(None) };
            let Some(event) = log.next().await? else {
                self.log = None;
                self.ready.extend(self.context.take_messages());
                continue;
            };
            self.context.apply(&event);
            if event.sequence >= self.compacted_at {
                self.ready.extend(self.context.take_settled());
            }
        }
    }

    /// Results of the last step that are there already while others are missing, once all messages were taken.
    pub fn open_results(&self) -> Vec<ToolOutcome> {
        self.context.open_results()
    }
}

impl Engine {
    /// What the model would read of a session now.
    pub async fn context_part(&self, tenant: &TenantId, id: &SessionId) -> Result<ContextPart> {
        let last = self.session(tenant, id).await?.view.last_sequence;
        let before = Some(last.saturating_add(1));
        let of_type = |name: &str| LogRange { before, types: vec![name.to_owned()], ..LogRange::default() };
        let newest = LogRange { order: Order::Descending, likely: 1, ..of_type("session.compacted") };
        let compaction = self.log_for_model(tenant, id, newest).await?.next().await?;
        let system = self.log_for_model(tenant, id, of_type("session.system_message")).await?;
        let log = self.log_for_model(tenant, id, LogRange { before, ..LogRange::default() }).await?;
        Ok(ContextPart {
            system: Some(system),
            log: Some(log),
            context: Context::default(),
            compacted_at: compaction.map_or(0, |event| event.sequence),
            ready: VecDeque::new(),
        })
    }
}
