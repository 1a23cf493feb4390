//! The outbox: what is on its way out, and what became of it.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::delivery::{Attempt, Delivery, DeliveryStatus, NewDelivery};
use petasos_core::ids::{DeliveryId, RunId, SessionId, TenantId};

use super::{Page, PageRequest};
use crate::error::Result;

/// What an append does to the deliveries of its session, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outbox {
    /// What becomes of events that are not delivered yet; none to leave them alone.
    pub undelivered: Option<Undelivered>,
    /// Deliveries to make.
    pub new: Vec<NewDelivery>,
}

/// What becomes of a session's events that are not delivered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Undelivered {
    /// They go there. The first of them is due at once, and what was tried elsewhere no longer counts.
    Move(String),
    /// They are not delivered.
    Cancel,
}

/// Which deliveries are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryFilter {
    /// Only those that stand there.
    pub status: Option<DeliveryStatus>,
    /// Only those about this session.
    pub session_id: Option<SessionId>,
    /// Only those of this run.
    pub run_id: Option<RunId>,
}

/// What may be tried now. Deliveries that failed before are counted apart, so that receivers that do not answer cannot
/// take the places of those that do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueRequest {
    /// The present.
    pub now: Timestamp,
    /// The latest time to which a first attempt can have been put off. One that is due later was written by a clock that
    /// was ahead, and is due now.
    pub first_latest: Timestamp,
    /// The same for further attempts.
    pub again_latest: Timestamp,
    /// At most this many that were not tried yet.
    pub first: usize,
    /// At most this many that were.
    pub again: usize,
    /// Lanes of which nothing is wanted, since something is under way in them.
    pub busy: HashSet<String>,
}

/// A delivery whose time has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// What is sent.
    pub body: Vec<u8>,
}

/// Deliveries whose time has come, longest due first, at most one of a lane.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// The deliveries.
    pub deliveries: Vec<DueDelivery>,
    /// When the time of the next one comes; none if there is none.
    pub next_at: Option<Timestamp>,
}

/// An attempt that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempted {
    /// The delivery.
    pub id: DeliveryId,
    /// Where it went. If it is to go elsewhere by now, a failure changes nothing.
    pub url: String,
    /// What came of it.
    pub attempt: Attempt,
    /// What is next.
    pub then: AfterAttempt,
    /// The present.
    pub now: Timestamp,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// Nothing: it is delivered.
    Delivered,
    /// Nothing: it is given up.
    Dead,
    /// Another attempt.
    Again(Timestamp),
}

/// Deliveries. Those of a session's events are made by [`EventLog::append`](super::EventLog::append), and wait for each
/// other: of those that are pending, only the first is ever due. Callbacks, and deliveries that are made again, wait
/// for nothing. Deliveries outlive their sessions.
pub trait DeliveryStore: Send + Sync + 'static {
    /// Keeps a delivery that comes with no event. `AlreadyExists` if there is one of that id.
    fn add_delivery(&self, delivery: NewDelivery) -> BoxFuture<'_, Result<()>>;

    /// One delivery of a tenant.
    fn delivery<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Delivery>>>;

    /// What a delivery sends.
    fn delivery_body<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: &'a DeliveryId,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>>>;

    /// A tenant's deliveries, newest first.
    fn deliveries<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: DeliveryFilter,
        page: PageRequest,
    ) -> BoxFuture<'a, Result<Page<Delivery>>>;

    /// What may be tried now, whoever owns it.
    fn due_deliveries(&self, request: DueRequest) -> BoxFuture<'_, Result<Due>>;

    /// Keeps what came of an attempt. A delivery that was cancelled in the meantime stays cancelled, and one that is
    /// gone stays gone.
    fn record_attempt(&self, attempted: Attempted) -> BoxFuture<'_, Result<()>>;

    /// How many deliveries are pending, whoever owns them.
    fn pending_deliveries(&self) -> BoxFuture<'_, Result<u64>>;

    /// Removes up to `limit` deliveries that are not pending and were made before a time, and says how many. A callback
    /// that is dead stays as long as it is the newest of its run, which would look reported without it.
    fn forget_deliveries(&self, before: Timestamp, limit: usize) -> BoxFuture<'_, Result<usize>>;
}
