//! What the events of an append put into the outbox.

use petasos_core::State;
use petasos_core::agent::AgentDefinition;
use petasos_core::delivery::{NewDelivery, Subject};
use petasos_core::event::Event;
use petasos_core::ids::{DeliveryId, TenantId};
use petasos_core::session::{SessionHeader, SessionView};
use petasos_store::{Append, Outbox, Store, Undelivered};
use uuid::Uuid;

use super::{Deliveries, DeliveryView, EVENT_WEBHOOK_URL, Rendered};
use crate::{delegate, load};

/// What a session's actor keeps for its webhooks: the fold of the turn under way. A session without a webhook has none.
#[derive(Default)]
pub(crate) struct SessionOutbox {
    view: Option<Box<dyn DeliveryView>>,
}

impl SessionOutbox {
    /// The outbox of an append that leads from one state to another. If the append fails, [`SessionOutbox::reset`] must
    /// be called: the fold has seen events that are not in the log.
    pub(crate) async fn fill(
        &mut self,
        deliveries: &Deliveries,
        store: &dyn Store,
        session: (&SessionHeader, &AgentDefinition),
        (before, after): (&State, &State),
        events: &[Event],
    ) -> petasos_store::Result<Outbox> {
        let (header, agent) = session;
        let url = deliveries.session_url(header, &after.view, agent);
        let named = |state: &State| state.view.metadata.get(EVENT_WEBHOOK_URL).cloned();
        // What was meant for a receiver of the session's own is not for anybody else.
        let undelivered =
            (named(before) != named(after)).then(|| match url.filter(|_| named(after).is_some()) {
                Some(url) => Undelivered::Move(url.to_owned()),
                None => Undelivered::Cancel,
            });
        let Some(url) = url else {
            self.view = None;
            return Ok(Outbox { undelivered, new: Vec::new() });
        };
        let view = match &mut self.view {
            Some(view) => view,
            none => none.insert(folded(deliveries, store, before).await?),
        };
        Ok(Outbox { undelivered, new: rendered(view.as_mut(), &header.tenant, events, url) })
    }

    /// Forgets what was folded.
    pub(crate) fn reset(&mut self) {
        self.view = None;
    }
}

impl Deliveries {
    /// Where the events of a session go. Those of subagents go nowhere: they are part of their parent's work.
    fn session_url<'a>(
        &'a self,
        header: &SessionHeader,
        view: &'a SessionView,
        agent: &'a AgentDefinition,
    ) -> Option<&'a str> {
        if header.platform == delegate::PLATFORM { None } else { self.event_url(&view.metadata, agent) }
    }

    /// The outbox of the log that a session begins with.
    pub(crate) fn first(&self, header: &SessionHeader, agent: &AgentDefinition, log: &Append) -> Outbox {
        let Some(url) = self.session_url(header, &log.view, agent) else { return Outbox::default() };
        let mut view = (self.options.new_view)();
        Outbox { undelivered: None, new: rendered(view.as_mut(), &header.tenant, &log.events, url) }
    }
}

/// The fold of what the log says of the turn under way.
async fn folded(
    deliveries: &Deliveries,
    store: &dyn Store,
    state: &State,
) -> petasos_store::Result<Box<dyn DeliveryView>> {
    let mut view = (deliveries.options.new_view)();
    if let Some(turn) = &state.turn {
        let (first, last) = (turn.opened_by, state.view.last_sequence);
        load::part(store, &state.session_id, first, last, |event| drop(view.push(event))).await?;
    }
    Ok(view)
}

/// Deliveries of what receivers see of these events.
fn rendered(view: &mut dyn DeliveryView, tenant: &TenantId, events: &[Event], url: &str) -> Vec<NewDelivery> {
    let seen = events.iter().filter_map(|event| Some((event, view.push(event)?)));
    seen.map(|(event, rendered)| delivery(tenant, event, rendered, url)).collect()
}

fn delivery(tenant: &TenantId, event: &Event, rendered: Rendered, url: &str) -> NewDelivery {
    let Rendered { offset, body } = rendered;
    NewDelivery {
        id: DeliveryId::from_uuid(Uuid::now_v7()),
        tenant: tenant.clone(),
        webhook_id: format!("evt_{}_{offset}", event.session_id),
        subject: Subject::Event { session_id: event.session_id.clone(), offset },
        url: url.to_owned(),
        body,
        created_at: event.created_at,
        replay_of: None,
    }
}
