//! What a caller of the engine can be told.

use petasos_core::agent::InvalidDefinition;
use petasos_core::model_settings::InvalidSetting;
use petasos_core::step::Refusal;

use crate::routines::Mismatch;

/// The result of an engine call.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the engine did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing of that name exists for this tenant.
    #[error("there is no {kind} {id}")]
    NotFound {
        /// `agent`, `session`, `routine`, `run`, `delivery`, `key` and so on.
        kind: &'static str,
        /// The id that was asked for.
        id: String,
    },
    /// The session cannot take this now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The agent's definition cannot be used.
    #[error(transparent)]
    InvalidDefinition(#[from] InvalidDefinition),
    /// A skill cannot be had, or cannot be used.
    #[error("the skill {name} cannot be used: {problem}")]
    InvalidSkill {
        /// The skill.
        name: String,
        /// Why not.
        problem: String,
    },
    /// A field of the request cannot be used.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field, as a path.
        field: String,
        /// What is wrong and what is allowed.
        problem: String,
    },
    /// A URL may not be reached on a caller's word.
    #[error("{field}: {problem}")]
    EgressDenied {
        /// The field that names it, as a path.
        field: String,
        /// Why not, and which setting would allow it.
        problem: String,
    },
    /// The agent is at another version than the caller thinks.
    #[error("agent {id} is at version {actual}, not at {expected}; read it again and repeat the change")]
    VersionConflict {
        /// The agent.
        id: String,
        /// The version that the caller named.
        expected: u32,
        /// The version that is there.
        actual: u32,
    },
    /// Something of that name is there already.
    #[error("{kind} {id} exists already")]
    AlreadyExists {
        /// `agent` or `session`.
        kind: &'static str,
        /// Its id.
        id: String,
    },
    /// The agent takes no new sessions.
    #[error("agent {id} is archived and takes no new sessions")]
    AgentArchived {
        /// The agent.
        id: String,
    },
    /// The session has more requests waiting than it may.
    #[error("session {id} has too many requests waiting; try again in a moment")]
    Busy {
        /// The session.
        id: String,
    },
    /// Something was added to the session since the caller looked.
    #[error("session {id} has moved on in the meantime; read it again and repeat the request")]
    MovedOn {
        /// The session.
        id: String,
    },
    /// The input of a run breaks its schema.
    #[error("the input does not fit: {}", .0.message)]
    InputMismatch(Mismatch),
    /// The same key came with another request.
    #[error("the idempotency key was used for another request, which became {run_id}; use a new key")]
    KeyReused {
        /// The run that it became.
        run_id: String,
    },
    /// The session that a run needs is not to be had.
    #[error("{problem}")]
    SessionUnusable {
        /// Why not.
        problem: String,
    },
    /// The run has come to its end already.
    #[error("run {id} is settled")]
    RunSettled {
        /// The run.
        id: String,
    },
    /// The server is going down.
    #[error("the server is shutting down; try again in a moment")]
    ShuttingDown,
    /// The server is going down in the middle of a request, which may be in the log already.
    #[error(
        "the server is shutting down and may have taken this already; look at the session after the restart, and send it \
         again only if it is not there"
    )]
    CutOff,
    /// The store failed. The cause is for the log, not for the caller.
    #[error("the store failed")]
    Store(#[source] petasos_store::Error),
}

impl Error {
    /// A setting of a model cannot be used.
    pub(crate) fn setting(invalid: InvalidSetting) -> Self {
        Error::Invalid { field: invalid.name, problem: invalid.problem }
    }
}

impl From<petasos_store::Error> for Error {
    fn from(error: petasos_store::Error) -> Self {
        match error {
            petasos_store::Error::InvalidCursor => Error::Invalid {
                field: "cursor".to_owned(),
                problem: "is not one that this listing returned".to_owned(),
            },
            error => Error::Store(error),
        }
    }
}
