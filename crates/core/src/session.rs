//! A session as the store and the surfaces list it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::StopReason;
use crate::ids::{AgentId, SessionId, TenantId};
use crate::model::Usage;

/// Whether a turn is running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// No turn, or one that waits for an answer.
    Idle,
    /// A turn is under way.
    Running,
}

impl Status {
    /// The status as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Running => "running",
        }
    }
}

/// What is fixed when a session is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionHeader {
    /// Names the session.
    pub id: SessionId,
    /// Whose session it is.
    pub tenant: TenantId,
    /// The agent.
    pub agent_id: AgentId,
    /// The version of the agent that the session stays with.
    pub agent_version: u32,
    /// With the agent's id, the scope of memory, skills and workspace.
    pub user_id: Option<String>,
    /// The surface or channel that created it (`api`, `aap`, `cli`, …).
    pub platform: String,
    /// When it was created.
    pub created_at: Timestamp,
}

/// The platform of sessions that were opened as conversations.
pub const CONVERSATION_PLATFORM: &str = "conversation";
/// The platform of sessions that are made for runs of routines. Their users go with them.
pub const RUN_PLATFORM: &str = "routine";

impl SessionHeader {
    /// The user for whom something is worth keeping; none if there is none, or none who comes back.
    pub fn lasting_user(&self) -> Option<&str> {
        self.user_id.as_deref().filter(|_| self.platform != RUN_PLATFORM)
    }
}

/// What folding the log makes of the parts of a session that change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// The title, given or generated.
    pub title: Option<String>,
    /// The caller's own tags.
    pub metadata: Map<String, Value>,
    /// Whether a turn is running.
    pub status: Status,
    /// Why it last became idle.
    pub stop_reason: Option<StopReason>,
    /// Tokens of all its model calls.
    pub usage: Usage,
    /// How many model calls there were.
    pub model_calls: u64,
    /// When the log last grew.
    pub updated_at: Timestamp,
    /// When it was archived.
    pub archived_at: Option<Timestamp>,
    /// The sequence of the last event; 0 for none.
    pub last_sequence: u64,
}

impl SessionView {
    /// When what it waits for is no longer waited for.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match self.stop_reason {
            Some(StopReason::RequiresAction { expires_at, .. }) if self.status == Status::Idle => expires_at,
            _ => None,
        }
    }

    /// A session whose log is empty.
    pub fn new(created_at: Timestamp, title: Option<String>, metadata: Map<String, Value>) -> Self {
        SessionView {
            title,
            metadata,
            status: Status::Idle,
            stop_reason: None,
            usage: Usage::default(),
            model_calls: 0,
            updated_at: created_at,
            archived_at: None,
            last_sequence: 0,
        }
    }
}

/// A session as it is listed: what never changes, and the fold of the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// What never changes.
    pub header: SessionHeader,
    /// What the log says about the rest.
    pub view: SessionView,
}
