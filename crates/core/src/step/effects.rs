//! What must be going on in a given state.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::limits::Limits;
use crate::state::{Call, Phase, Progress, State};

/// Work that the driver carries out. Each ends in an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Call the model. Ends in `ModelFinished`.
    CallModel {
        /// The message that opened the turn, so that the calls of two turns are never taken for one.
        turn: u64,
        /// Which call of the turn it is.
        call: u32,
    },
    /// Make the context shorter. Ends in `CompactionFinished`.
    Compact {
        /// The message that opened the turn.
        turn: u64,
        /// How many model calls the turn has made.
        call: u32,
        /// Whether the provider refused the context.
        refused: bool,
    },
    /// Run a tool whose start is in the log. Ends in `ToolFinished`.
    RunTool(Call),
    /// Wait until the turn has run for as long as it may. Ends in `DeadlinePassed`.
    Deadline(Timestamp),
}

/// The effects that a state wants. One that is already under way is not started again; one that is under way and
/// no longer wanted is stopped.
pub fn effects(state: &State, limits: &Limits) -> Vec<Effect> {
    let Some(turn) = state.turn.as_ref().filter(|turn| !turn.is_paused()) else { return Vec::new() };
    let mut wanted = Vec::new();
    match &turn.phase {
        Phase::Opening => {}
        Phase::Compacting => {
            let refused = turn.overflows > 0;
            wanted.push(Effect::Compact { turn: turn.opened_by, call: turn.model_calls, refused });
        }
        Phase::CallingModel => {
            wanted.push(Effect::CallModel { turn: turn.opened_by, call: turn.model_calls });
        }
        Phase::Acting { calls, .. } => {
            let started = calls.iter().filter(|call| call.progress == Progress::Started);
            // What is noted about a call while it runs does not make it another one.
            wanted.extend(
                started.map(|call| Effect::RunTool(Call { threads: BTreeMap::new(), ..call.clone() })),
            );
        }
    }
    // A run has a deadline of its own, which holds from its acceptance and whoever drives it.
    if turn.run.is_some() {
        return wanted;
    }
    let time = SignedDuration::try_from(limits.turn_time).unwrap_or(SignedDuration::MAX);
    let deadline = turn.running_since.saturating_add(time).unwrap_or(Timestamp::MAX);
    wanted.push(Effect::Deadline(deadline));
    wanted
}
