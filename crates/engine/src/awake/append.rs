//! How an awake session takes an input: it steps, appends what comes of it, and shows it.

use std::time::Duration;

use petasos_core::event::{Event, Payload};
use petasos_core::step::{self, Input};
use petasos_store::Append;

use super::Actor;
use crate::engine::now;
use crate::error::{Error, Result};
use crate::observed::observed;

/// How long an actor waits before it tries to write again.
const WRITE_RETRIES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_millis(1000),
    Duration::from_millis(3000),
];

impl Actor {
    /// Feeds an input that nobody can send again, and so tries hard to write what comes of it.
    pub(super) async fn insist(&mut self, input: Input) -> Result<()> {
        for pause in WRITE_RETRIES {
            match self.feed_input(input.clone()).await {
                Err(Error::Store(error)) if !matches!(error, petasos_store::Error::Stale { .. }) => {
                    tracing::warn!(session_id = %self.header.id, %error, "the log could not be written; trying again");
                    tokio::time::sleep(pause).await;
                }
                other => return other.map(drop),
            }
        }
        self.feed_input(input).await.map(drop)
    }

    /// Steps, appends, and shows what was appended.
    pub(crate) async fn feed_input(&mut self, input: Input) -> Result<Vec<Event>> {
        let events = step::step(&self.state, input, &self.limits, now())?;
        if !events.is_empty() {
            let hears = !self.shared.hooks.is_empty();
            let observed = if hears { observed(&self.state, &events) } else { Vec::new() };
            self.append(&events).await?;
            self.tell_hooks(observed);
        }
        Ok(events)
    }

    /// Appends in one commit, while the next model call gets ready. The actor moves on only if that succeeds.
    async fn append(&mut self, events: &[Event]) -> Result<()> {
        let mut state = self.state.clone();
        events.iter().for_each(|event| state.apply(event));
        // A fold is worth keeping where the session may sleep.
        let may_sleep = state.turn.as_ref().is_none_or(|turn| turn.is_paused());
        let checkpoint = if may_sleep { serde_json::to_vec(&state).ok() } else { None };
        let callbacks = self.callbacks(events).await?;
        let store = self.shared.store.as_ref();
        let (session, states) = ((&*self.header, &*self.agent), (&self.state, &state));
        let mut outbox = self.outbox.fill(&self.shared.deliveries, store, session, states, events).await?;
        outbox.new.extend(callbacks);
        let delivers = outbox != Default::default();
        let append = Append {
            session_id: self.header.id.clone(),
            expected_sequence: self.state.view.last_sequence,
            events: events.to_vec(),
            view: state.view.clone(),
            checkpoint,
            outbox,
        };
        let (number, before) = (self.next_number(), self.context.take());
        let store = self.shared.store.as_ref();
        // In this order: what waits for the disk may keep this thread.
        let ((context, call), appended) =
            tokio::join!(self.prepare(number, before, events, &state), store.append(append));
        if let Err(error) = appended {
            call.iter().for_each(|call| self.call_off(call));
            self.outbox.reset();
            return Err(error.into());
        }
        if delivers {
            self.shared.deliveries.wake();
        }
        self.shared.recovery.set_aside.appended(&self.header.tenant, &self.header.id, events);
        self.state = state;
        self.context = context;
        self.show(events);
        if let Some(call) = call {
            self.begin(call);
        }
        Ok(())
    }

    /// Shows what was appended to whoever waits for it.
    fn show(&self, events: &[Event]) {
        self.feed.publish(events);
        self.shared.metrics.count(events);
        if self.state.view.expires_at().is_some() {
            self.shared.expiry.changed();
        }
        if events.iter().any(|event| matches!(event.payload, Payload::RunSettled(_))) {
            self.shared.runs.changed.notify_one();
        }
    }
}
