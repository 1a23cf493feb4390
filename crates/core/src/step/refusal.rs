//! Why a session cannot take what was sent.

/// Why the session cannot take what was sent. Nothing is appended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A turn is running.
    #[error("a turn is running; wait for session.status_idle, or send user.steer or user.interrupt")]
    TurnInProgress {
        /// The message that opened it.
        turn_id: String,
    },
    /// The turn waits for other answers.
    #[error("the turn waits for {}; answer first, or send user.interrupt", list(pending))]
    ActionRequired {
        /// The message that opened it.
        turn_id: String,
        /// What it waits for.
        pending: Vec<String>,
    },
    /// Nothing waits for this answer.
    #[error("the action {id} is not pending; {}", pending_text(pending))]
    NotPending {
        /// The id in the answer.
        id: String,
        /// What is pending.
        pending: Vec<String>,
    },
    /// Something waits for this answer, but an earlier event of the same request has settled it.
    #[error("the action {id} is settled by an earlier event of this request; leave one of the two out")]
    SettledTwice {
        /// The id in the answer.
        id: String,
        /// What is pending.
        pending: Vec<String>,
    },
    /// Something waits for another kind of answer under this id.
    #[error("the action {id} is answered by {expected}, not by {got}")]
    WrongAnswer {
        /// The id in the answer.
        id: String,
        /// The event type that would fit.
        expected: &'static str,
        /// The one that was sent.
        got: &'static str,
        /// What is pending.
        pending: Vec<String>,
    },
    /// The answer allows a pattern that the call does not offer.
    #[error("pattern must be one of those that the pending action offers: {}", offered_text(offered))]
    UnknownPattern {
        /// The pattern in the answer.
        pattern: String,
        /// The patterns of the call.
        offered: Vec<String>,
    },
    /// The session was archived.
    #[error("the session is archived and takes no more events; create a new session")]
    Archived,
}

fn list(ids: &[String]) -> String {
    ids.join(", ")
}

fn offered_text(offered: &[String]) -> String {
    if offered.is_empty() { "it offers none".to_owned() } else { list(offered) }
}

fn pending_text(pending: &[String]) -> String {
    if pending.is_empty() { "nothing is".to_owned() } else { format!("pending: {}", list(pending)) }
}
