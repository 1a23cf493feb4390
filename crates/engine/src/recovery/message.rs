//! What is said about work that is set aside.

use petasos_core::recovery::WorkKind;
use petasos_store::WorkState;

/// What is said about a turn that ends because of it, and about a delivery and a run.
pub(super) const GIVEN_UP: &str = "The server died several times in a row while this was under way, the last time \
    while it was tried by itself. It is given up.";

/// What happened to a piece of work, and what happens next.
pub(super) fn of(kind: WorkKind, state: WorkState) -> &'static str {
    match state {
        WorkState::Told => {
            "The server died three times in a row while this tool call was running. The call is not made again; the \
             model was told that its outcome is unknown."
        }
        WorkState::Counted | WorkState::Waiting | WorkState::Trying => {
            "The server died three times in a row while this was under way. It is tried by itself when the server has \
             been up for ten seconds."
        }
        WorkState::Ending | WorkState::GivenUp => given_up(kind),
    }
}

fn given_up(kind: WorkKind) -> &'static str {
    match kind {
        WorkKind::ToolCall | WorkKind::ModelCall | WorkKind::Wake => {
            "The server died while this turn was tried by itself. The turn ended with an error; send a message to go on."
        }
        WorkKind::Expiry => {
            "The server died while the wait of this session was ended by itself. The session goes on waiting; answer or \
             delete it."
        }
        WorkKind::Run => {
            "The server died while this run was started by itself. The run failed; trigger it again."
        }
        WorkKind::Schedule => {
            "The server died while this schedule was tried by itself. It starts no more runs until its routine is changed."
        }
        WorkKind::Delivery => {
            "The server died while this delivery was tried by itself. It is dead and can be replayed."
        }
        WorkKind::Removal => {
            "The server died while the files of this deleted session were removed by themselves. Stop the server and \
             remove them by hand."
        }
        WorkKind::Index => {
            "The server died while a message was put into the search index by itself. The message is not found by searches."
        }
    }
}
