//! Full-text search over what was said.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use petasos_core::ids::SessionId;
use petasos_core::memory::UserScope;

use crate::error::Result;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageRole {
    /// The user, in a `user.message`.
    User,
    /// The agent, in an `agent.message`.
    Agent,
}

impl MessageRole {
    /// The role as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageRole::User => "user",
            MessageRole::Agent => "agent",
        }
    }
}

/// Which messages come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageOrder {
    /// Those that fit best. Among very many, only the newest are compared.
    #[default]
    Best,
    /// Those of the newest sessions, newest first.
    Newest,
}

/// Which messages are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageQuery {
    /// Words, in any order and any inflection; in double quotes, words that follow each other; with a `*` at its end,
    /// the beginning of a word. Between two of them, `OR` says that either will do. Nothing else has a meaning.
    pub words: String,
    /// Only what this side said.
    pub role: Option<MessageRole>,
    /// Nothing of this session.
    pub except: Option<SessionId>,
    /// Which come first.
    pub order: MessageOrder,
    /// At most this many.
    pub limit: usize,
}

/// A message that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHit {
    /// Its session.
    pub session_id: SessionId,
    /// The title of its session.
    pub title: Option<String>,
    /// Its place in the log.
    pub sequence: u64,
    /// Who said it.
    pub role: MessageRole,
    /// When.
    pub created_at: Timestamp,
    /// What was said, in one text.
    pub text: String,
}

/// Search over the messages of sessions that have a user.
pub trait MessageSearch: Send + Sync + 'static {
    /// Messages of a scope's sessions. Whatever was appended before this is asked is found, but for the messages of a
    /// store that is still busy making its index.
    fn search_messages<'a>(
        &'a self,
        scope: &'a UserScope,
        query: MessageQuery,
    ) -> BoxFuture<'a, Result<Vec<MessageHit>>>;
}
