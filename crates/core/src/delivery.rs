//! A delivery: one webhook or callback on its way out.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{DeliveryId, RunId, SessionId, TenantId};

/// What a delivery tells about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// An event of a session. They are delivered one after the other, in the order of the log.
    Event {
        /// The session.
        session_id: SessionId,
        /// The place of the event, counted from 0.
        offset: u64,
    },
    /// A run that has settled.
    Callback {
        /// The run.
        run_id: RunId,
        /// The session that it ran in.
        session_id: SessionId,
    },
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryStatus {
    /// It waits for its turn or for its next attempt.
    Pending,
    /// The receiver took it.
    Delivered,
    /// It was given up.
    Dead,
    /// Its session no longer wants webhooks.
    Cancelled,
}

impl DeliveryStatus {
    /// Every status.
    pub const ALL: [DeliveryStatus; 4] =
        [DeliveryStatus::Pending, DeliveryStatus::Delivered, DeliveryStatus::Dead, DeliveryStatus::Cancelled];

    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryStatus::Pending => "pending",
            DeliveryStatus::Delivered => "delivered",
            DeliveryStatus::Dead => "dead",
            DeliveryStatus::Cancelled => "cancelled",
        }
    }
}

/// One attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// What the receiver answered; none if no answer came.
    pub status_code: Option<u16>,
    /// Why it failed; none if it did not.
    pub error: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// A delivery to be made. Its first attempt is due at once, or when those before it are done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Names it.
    pub id: DeliveryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it tells about.
    pub subject: Subject,
    /// Where it goes.
    pub url: String,
    /// By what the receiver knows it again.
    pub webhook_id: String,
    /// What is sent, the same at every attempt.
    pub body: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The delivery that is made again by this one.
    pub replay_of: Option<DeliveryId>,
}

/// A delivery without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Names it.
    pub id: DeliveryId,
    /// Whose it is.
    pub tenant: TenantId,
    /// What it tells about.
    pub subject: Subject,
    /// Where it goes now.
    pub url: String,
    /// By what the receiver knows it again.
    pub webhook_id: String,
    /// Where it stands.
    pub status: DeliveryStatus,
    /// What was tried, oldest first.
    pub attempts: Vec<Attempt>,
    /// How many of the attempts count against where it goes now.
    pub tries: u32,
    /// When it is tried next; none while it waits for those before it, and when it is settled.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// The delivery that is made again by this one.
    pub replay_of: Option<DeliveryId>,
}

impl Subject {
    /// The session that it is about.
    pub fn session_id(&self) -> &SessionId {
        match self {
            Subject::Event { session_id, .. } | Subject::Callback { session_id, .. } => session_id,
        }
    }

    /// `event` or `callback`.
    pub fn kind(&self) -> &'static str {
        match self {
            Subject::Event { .. } => "event",
            Subject::Callback { .. } => "callback",
        }
    }
}

impl Delivery {
    /// What at most one delivery of is under way at a time: the events of a session, or one callback.
    pub fn lane(&self) -> &str {
        match &self.subject {
            Subject::Event { session_id, .. } => session_id.as_str(),
            Subject::Callback { .. } => self.id.as_str(),
        }
    }
}
