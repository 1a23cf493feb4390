//! Ends of tool calls that hooks are told before the next model call.
//!
//! The model call tells them one by one. What it has not come to when its turn is stopped is told all the same.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use petasos_hooks::Observation;

use crate::feed::lock;
use crate::observed::Observed;

/// Ends that are yet to be told. Whoever takes one tells it. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct EndedCalls(Arc<Mutex<VecDeque<Observed>>>);

impl EndedCalls {
    /// Leaves an end to the next model call of its turn.
    pub(crate) fn add(&self, ended: Observed) {
        lock(&self.0).push_back(ended);
    }

    /// Takes the next end in a turn.
    pub(crate) fn next(&self, turn_id: &str) -> Option<Observation> {
        lock(&self.0).pop_front_if(|ended| ended.turn_id == turn_id).map(|ended| ended.observation)
    }

    /// Takes all that no model call of the running turn will tell; all there are if none runs.
    pub(crate) fn take_left_over(&self, running: Option<&str>) -> Vec<Observed> {
        let mut ended = lock(&self.0);
        let (waiting, left_over) = std::mem::take(&mut *ended)
            .into_iter()
            .partition(|ended| running == Some(ended.turn_id.as_str()));
        *ended = waiting;
        left_over.into()
    }
}
