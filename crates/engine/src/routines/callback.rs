//! Callbacks: where runs report, in the same commit that settles them.

use jiff::Timestamp;
use petasos_core::delivery::{NewDelivery, Subject};
use petasos_core::event::{Event, Payload};
use petasos_core::ids::DeliveryId;
use petasos_core::run::{RunOutcome, RunRecord};
use uuid::Uuid;

use crate::awake::Actor;
use crate::engine::Shared;
use crate::error::Result;

/// What a run that is settled looks like where it reports. A surface says it.
pub type CallbackBody = fn(&RunRecord) -> Vec<u8>;

/// The callback of a run that ends so; none if it reports nowhere.
pub(super) fn of(
    shared: &Shared,
    run: &RunRecord,
    outcome: &RunOutcome,
    at: Timestamp,
) -> Option<NewDelivery> {
    let url = run.given.callback_url.clone()?;
    let settled = run.clone().settled(outcome.clone(), at);
    Some(NewDelivery {
        id: DeliveryId::from_uuid(Uuid::now_v7()),
        tenant: run.tenant.clone(),
        subject: Subject::Callback { run_id: run.id.clone(), session_id: run.session_id.clone() },
        url,
        webhook_id: run.id.to_string(),
        body: (shared.callback_body)(&settled),
        created_at: at,
        replay_of: None,
    })
}

impl Actor {
    /// The callbacks of the runs that these events settle.
    pub(crate) async fn callbacks(&self, events: &[Event]) -> Result<Vec<NewDelivery>> {
        let mut callbacks = Vec::new();
        for event in events {
            let Payload::RunSettled(settled) = &event.payload else { continue };
            let run = self.shared.store.run(&self.header.tenant, &settled.run_id).await?;
            if let Some(run) = run.filter(|run| !run.status.is_settled()) {
                callbacks.extend(of(&self.shared, &run, &settled.outcome, event.created_at));
            }
        }
        Ok(callbacks)
    }
}
