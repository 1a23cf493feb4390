//! The task that sends what is due.
//!
//! It keeps in mind only what is under way. What is due, and when, is in the store, so there is nothing to recover, and
//! a million sessions that wait for their receivers cost one timer. It wakes when something is committed, when an
//! attempt ends, and when the next delivery falls due.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use petasos_core::delivery::{Delivery, Subject};
use petasos_core::recovery::WorkKind;
use petasos_store::{AfterAttempt, Attempted, DueDelivery, DueRequest};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::DeliverySettings;
use crate::due;
use crate::engine::{Shared, now};

/// How long to wait before the store is asked again after it failed.
const STORE_REST: Duration = Duration::from_secs(1);
/// How long the server waits for receivers when it stops. What they do not answer is sent again at the next start.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// When more than this many are under way, their ends are gathered for a moment before the store is asked what is next.
const FEW: usize = 8;
const GATHER: Duration = Duration::from_millis(1);
/// How often old deliveries are looked for, if there is anything else to do.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
const FORGET_AT_ONCE: usize = 500;

/// Sends deliveries until the server stops.
pub(crate) async fn run(shared: Arc<Shared>) {
    let mut sender = Sender::new(shared);
    while !sender.shared.closing.is_cancelled() {
        sender.forget_old().await;
        let next_at = match sender.start_due().await {
            Ok(next_at) => next_at,
            Err(error) => {
                tracing::warn!(%error, "due deliveries cannot be read; trying again");
                now().checked_add(STORE_REST).ok()
            }
        };
        sender.wait(next_at).await;
    }
    let last = async { while sender.one_ended().await {} };
    tokio::select! {
        () = last => {}
        () = sleep(LAST_ANSWERS) => {}
    }
}

struct Sender {
    shared: Arc<Shared>,
    attempts: JoinSet<()>,
    under_way: HashMap<Id, UnderWay>,
    forgot_at: Option<Instant>,
}

/// An attempt that is being made.
struct UnderWay {
    /// What nothing else may be sent of.
    lane: String,
    queue: Queue,
}

/// Receivers that do not answer must not take the places of those that do, so what failed before waits elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    First,
    Again,
}

impl Sender {
    fn new(shared: Arc<Shared>) -> Self {
        Sender { shared, attempts: JoinSet::new(), under_way: HashMap::new(), forgot_at: None }
    }

    fn settings(&self) -> &DeliverySettings {
        &self.shared.deliveries.options.settings
    }

    /// How many more may be sent now.
    fn free(&self, queue: Queue) -> usize {
        let places = match queue {
            Queue::First => self.settings().in_flight.max(1),
            Queue::Again => (self.settings().in_flight / 4).max(1),
        };
        places.saturating_sub(self.under_way.values().filter(|attempt| attempt.queue == queue).count())
    }

    /// Starts what is due and has a place. Returns when the next one falls due.
    async fn start_due(&mut self) -> petasos_store::Result<Option<Timestamp>> {
        let (first, again) = (self.free(Queue::First), self.free(Queue::Again));
        if first == 0 && again == 0 {
            return Ok(None);
        }
        let under_way = self.under_way.values().map(|attempt| attempt.lane.clone());
        let busy = under_way.chain(self.shared.recovery.set_aside.held_lanes()).collect();
        let now = now();
        let put_off = |time: Duration| now.saturating_add(time).unwrap_or(Timestamp::MAX);
        let first_latest = put_off(due::LONGEST);
        let again_latest = put_off(self.settings().longest_pause().saturating_add(due::LONGEST));
        let request = DueRequest { now, first_latest, again_latest, first, again, busy };
        let due = self.shared.store.due_deliveries(request).await?;
        due.deliveries.into_iter().for_each(|due| self.start(due));
        Ok(due.next_at)
    }

    fn start(&mut self, due: DueDelivery) {
        let lane = due.delivery.lane().to_owned();
        let queue = if due.delivery.tries == 0 { Queue::First } else { Queue::Again };
        let attempt = self.attempts.spawn(make(Arc::clone(&self.shared), due));
        self.under_way.insert(attempt.id(), UnderWay { lane, queue });
    }

    /// Waits until there may be something to do.
    async fn wait(&mut self, next_at: Option<Timestamp>) {
        let shared = Arc::clone(&self.shared);
        let until_next = async {
            match next_at {
                Some(at) => sleep(due::until(at).min(due::LONGEST)).await,
                None => std::future::pending().await,
            }
        };
        let under_way = !self.attempts.is_empty();
        tokio::select! {
            () = shared.closing.cancelled() => {}
            () = shared.deliveries.due.notified() => {}
            () = until_next => {}
            _ = self.one_ended(), if under_way => {}
        }
        if self.under_way.len() > FEW {
            sleep(GATHER).await;
        }
        while let Some(ended) = self.attempts.try_join_next_with_id() {
            self.ended(ended);
        }
    }

    /// Waits for the end of an attempt; `false` if none is under way.
    async fn one_ended(&mut self) -> bool {
        let ended = self.attempts.join_next_with_id().await;
        let any = ended.is_some();
        ended.into_iter().for_each(|ended| self.ended(ended));
        any
    }

    fn ended(&mut self, ended: Result<(Id, ()), JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.under_way.remove(&id);
    }

    /// Removes deliveries that were settled long ago.
    async fn forget_old(&mut self) {
        if self.forgot_at.is_some_and(|at| at.elapsed() < FORGET_EVERY) {
            return;
        }
        self.forgot_at = Some(Instant::now());
        let Ok(before) = now().checked_sub(self.settings().keep) else { return };
        loop {
            match self.shared.store.forget_deliveries(before, FORGET_AT_ONCE).await {
                Ok(FORGET_AT_ONCE) => {}
                Ok(_) => return,
                Err(error) => {
                    tracing::warn!(%error, "old deliveries cannot be removed");
                    return;
                }
            }
        }
    }
}

/// Makes one attempt and writes down what came of it. Until that is written, nothing else of its lane is sent.
async fn make(shared: Arc<Shared>, due: DueDelivery) {
    let delivery = due.delivery.clone();
    let attempted = shared.deliveries.attempt(due).await;
    while let Err(error) = shared.store.record_attempt(attempted.clone()).await {
        tracing::warn!(delivery_id = %delivery.id, %error, "an attempt cannot be recorded; trying again");
        sleep(STORE_REST).await;
    }
    tell(&shared, &delivery, &attempted);
}

/// Says what came of an attempt to whoever wants to know.
fn tell(shared: &Shared, delivery: &Delivery, attempted: &Attempted) {
    let Attempted { attempt, then, .. } = attempted;
    let set_aside = &shared.recovery.set_aside;
    set_aside.succeeded(WorkKind::Delivery, &delivery.tenant, delivery.id.as_str());
    if let (AfterAttempt::Delivered, Some(replayed)) = (then, &delivery.replay_of) {
        set_aside.succeeded(WorkKind::Delivery, &delivery.tenant, replayed.as_str());
    }
    if matches!(delivery.subject, Subject::Callback { .. }) && !matches!(then, AfterAttempt::Again(_)) {
        // The session that was made for the run may go.
        shared.runs.changed.notify_one();
    }
    match then {
        AfterAttempt::Delivered => shared.metrics.delivery("delivered"),
        AfterAttempt::Again(_) => shared.metrics.delivery("failed"),
        AfterAttempt::Dead => {
            shared.metrics.delivery("dead");
            tracing::warn!(
                delivery_id = %delivery.id,
                webhook_id = delivery.webhook_id,
                session_id = %delivery.subject.session_id(),
                attempts = delivery.attempts.len() + 1,
                error = attempt.error.as_deref().unwrap_or_default(),
                "a delivery was given up; it can be replayed"
            );
        }
    }
}
