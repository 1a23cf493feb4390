//! Typed ids with a readable prefix.
//!
//! An id is letters, digits, `_` and `-`, so that it can stand in a path unescaped. Ids that we make carry a
//! version 7 UUID, which sorts by time; the caller supplies it, since this crate has no clock.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Why a text is not an id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {article} {kind} id: {problem}")]
pub struct InvalidId {
    article: &'static str,
    kind: &'static str,
    text: String,
    problem: &'static str,
}

const MAX_ID_LENGTH: usize = 128;

fn problem_of(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("it is empty")
    } else if text.len() > MAX_ID_LENGTH {
        Some("it is longer than 128 characters")
    } else if !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        Some("only letters, digits, '_' and '-' are allowed")
    } else {
        None
    }
}

/// Cuts a text to what an error message should repeat of it.
fn quoted(text: &str) -> String {
    text.chars().take(64).collect()
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $article:literal, $kind:literal, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// What ids made by [`Self::from_uuid`] start with.
            pub const PREFIX: &'static str = $prefix;

            /// Makes an id from a UUID that the caller drew.
            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(format!("{}{}", $prefix, uuid.simple()))
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                match problem_of(text) {
                    None => Ok(Self(text.to_owned())),
                    Some(problem) => {
                        Err(InvalidId { article: $article, kind: $kind, text: quoted(text), problem })
                    }
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// Names an agent. Agents from files are named after their file.
    AgentId, "an", "agent", "agent_"
);
text_id!(
    /// Names a session.
    SessionId, "a", "session", "session_"
);
text_id!(
    /// Names an API key. It is not the key.
    KeyId, "a", "key", "key_"
);
text_id!(
    /// Names a tenant, the wall between customers of one server.
    TenantId, "a", "tenant", "tenant_"
);
text_id!(
    /// Names one call of a built-in tool.
    ToolUseId, "a", "tool use", "toolu_"
);
text_id!(
    /// Names what a paused turn waits for when that is not a tool call.
    RequestId, "a", "request", "clarify_"
);
text_id!(
    /// Names a note that an agent keeps for a user.
    MemoryId, "a", "memory", "mem_"
);
text_id!(
    /// Names a delivery.
    DeliveryId, "a", "delivery", "dlv_"
);
text_id!(
    /// Names a routine. Routines from files are named after their file.
    RoutineId, "a", "routine", "routine_"
);
text_id!(
    /// Names one execution of a routine.
    RunId, "a", "run", "run_"
);
text_id!(
    /// Names a subagent's log under its parent session.
    ThreadId, "a", "thread", "thread_"
);

impl TenantId {
    /// The tenant of the admin key, of agents from files, and of everyone who never asked for another.
    pub fn default_tenant() -> Self {
        Self("default".to_owned())
    }
}

impl ToolUseId {
    /// Names one call of a tool of an MCP server.
    pub fn for_mcp(uuid: Uuid) -> Self {
        Self(format!("mcptoolu_{}", uuid.simple()))
    }

    /// Names one call of a tool that the application runs.
    pub fn for_custom(uuid: Uuid) -> Self {
        Self(format!("custom_toolu_{}", uuid.simple()))
    }

    /// Names the question, asked by this event of a session, whether to go on over a budget.
    pub fn for_budget(session_id: &SessionId, sequence: u64) -> Self {
        let session = EventId::session_part(session_id);
        // A session may have a longer name than fits; its end tells it apart.
        let session = &session[session.len().saturating_sub(64)..];
        Self(format!("{}{session}_{sequence}", Self::PREFIX))
    }
}

impl RunId {
    /// Makes the id of a run: 24 hexadecimal digits, the first half of them the time of a version 7 UUID, the second
    /// half its end, which is random.
    pub fn from_parts_of(uuid: Uuid) -> Self {
        let digits = uuid.simple().to_string();
        let (time, random) = (digits.get(..12).unwrap_or_default(), digits.get(20..).unwrap_or_default());
        Self(format!("{}{time}{random}", Self::PREFIX))
    }
}

impl ThreadId {
    /// Names the log of one of the subagents that a call starts. It is the same whenever the call is carried out, so
    /// that a call that goes on after a restart finds the subagents that it had.
    pub fn for_call(call: &ToolUseId, index: usize) -> Self {
        let call = call.as_str().trim_start_matches(ToolUseId::PREFIX);
        Self(format!("{}{call}_{index}", Self::PREFIX))
    }

    /// The session that is this thread.
    pub fn session_id(&self) -> SessionId {
        SessionId(self.0.clone())
    }
}

impl RequestId {
    /// Names a request for a sudo password.
    pub fn for_sudo(uuid: Uuid) -> Self {
        Self(format!("sudo_{}", uuid.simple()))
    }

    /// Names a request for a secret value.
    pub fn for_secret(uuid: Uuid) -> Self {
        Self(format!("secret_{}", uuid.simple()))
    }
}

/// Names one event of one log.
///
/// The id is made of the session and the sequence, so it needs no index of its own and a reader that resumes
/// from an event id is as cheap as one that resumes from a sequence.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventId {
    /// The session whose log holds the event.
    pub session_id: SessionId,
    /// Its place in that log.
    pub sequence: u64,
}

impl EventId {
    fn session_part(session_id: &SessionId) -> &str {
        session_id.as_str().strip_prefix(SessionId::PREFIX).unwrap_or(session_id.as_str())
    }

    /// The sequence that `text` names, if it is the id of an event of `session_id`.
    pub fn sequence_in(text: &str, session_id: &SessionId) -> Option<u64> {
        // What is shown live is named after the event before it.
        let event = match text.rsplit_once("_live") {
            Some((event, count)) if count.parse::<u64>().is_ok() => event,
            _ => text,
        };
        let (session, sequence) = event.strip_prefix("evt_")?.rsplit_once('_')?;
        if session != Self::session_part(session_id) {
            return None;
        }
        sequence.parse().ok()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "evt_{}_{}", Self::session_part(&self.session_id), self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked_and_named_in_the_error() {
        assert!("agent_7xK9s2".parse::<AgentId>().is_ok());
        let error = "a/b".parse::<AgentId>().unwrap_err().to_string();
        assert_eq!(error, "\"a/b\" is not an agent id: only letters, digits, '_' and '-' are allowed");
        assert!("".parse::<SessionId>().is_err());
        assert!("x".repeat(129).parse::<SessionId>().is_err());
    }

    #[test]
    fn the_id_of_a_run_has_24_digits() {
        let id = RunId::from_parts_of(Uuid::from_u128(0x0123_4567_89ab_7cde_8fff_0011_2233_4455));
        assert_eq!(id.as_str(), "run_0123456789ab001122334455");
    }

    #[test]
    fn an_event_id_leads_back_to_its_sequence() {
        let session_id: SessionId = "session_abc".parse().unwrap();
        let id = EventId { session_id: session_id.clone(), sequence: 42 };
        assert_eq!(id.to_string(), "evt_abc_42");
        assert_eq!(EventId::sequence_in("evt_abc_42", &session_id), Some(42));
        assert_eq!(EventId::sequence_in("evt_abc_42_live7", &session_id), Some(42));
        assert_eq!(EventId::sequence_in("evt_abc_42_live", &session_id), None);
        assert_eq!(EventId::sequence_in("evt_other_42", &session_id), None);
        assert_eq!(EventId::sequence_in("42", &session_id), None);
    }
}
