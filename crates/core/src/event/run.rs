//! How a run of a routine begins and ends.

use serde::{Deserialize, Serialize};

use crate::ids::{RoutineId, RunId};
use crate::run::{RunJob, RunOutcome};

/// Payload of `run.opened`. It follows the message that opens the run's turn, and holds all that the turn needs to
/// know about the run: the routine may change or go while it is under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunOpened {
    /// The run.
    pub run_id: RunId,
    /// The routine.
    pub routine_id: RoutineId,
    /// What is to be done, and within which bounds.
    pub job: RunJob,
}

/// Payload of `run.reminded`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReminded {
    /// What the model is told.
    pub text: String,
}

/// Payload of `run.settled`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSettled {
    /// The run.
    pub run_id: RunId,
    /// How it ended.
    pub outcome: RunOutcome,
}
