//! A turn under way.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{Call, PendingAction, TurnRun};
use crate::budget::Allowances;
use crate::event::{CutShort, Failure};
use crate::failed_calls::FailedCalls;
use crate::model::Usage;

/// A turn under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// The sequence of the message that opened it.
    pub opened_by: u64,
    /// When it last started to run.
    pub running_since: Timestamp,
    /// What the outside was last told: running, or idle for these actions.
    pub announced: Announced,
    /// Model calls so far.
    pub model_calls: u32,
    /// Tokens so far.
    pub tokens: u64,
    /// What they cost, in billionths.
    #[serde(default)]
    pub cost_nanos: u64,
    /// User events that nothing has taken up yet.
    pub waiting: Vec<u64>,
    /// What it does now.
    pub phase: Phase,
    /// How many model calls there were when the context was last compacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted_at: Option<u32>,
    /// How often in a row the provider refused the context as too long.
    #[serde(default)]
    pub overflows: u32,
    /// How many answers in a row ended at their limit in the middle of a call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut_calls: u32,
    /// The calls that failed, to notice repetitions.
    #[serde(default, skip_serializing_if = "FailedCalls::is_empty")]
    pub failed_calls: FailedCalls,
    /// When what it waits for is no longer waited for; none if that never happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The budget that is used up, until somebody lets the turn go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<Failure>,
    /// How often somebody let it go on over each budget that is not the session's.
    #[serde(default, skip_serializing_if = "Allowances::is_empty")]
    pub allowances: Allowances,
    /// The run that it is, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<TurnRun>>,
    /// The last model call whose text was announced by `session.typing`. A call that is made again after a crash is not
    /// announced again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typing_call: Option<u32>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// What the log last said about a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Announced {
    /// Nothing yet.
    Nothing,
    /// That it runs.
    Running,
    /// That it waits for these actions.
    Paused(Vec<String>),
}

/// What a turn does now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The message is there and no model call has started.
    Opening,
    /// The context is being compacted, before the next model call.
    Compacting,
    /// A model call is under way.
    CallingModel,
    /// A model call has ended, and its tool calls are being dealt with.
    Acting {
        /// The calls of the answer, in its order.
        calls: Vec<Call>,
        /// Why the answer was cut short.
        cut_short: Option<CutShort>,
        /// Why there was no answer.
        error: Option<Failure>,
    },
}

impl Turn {
    /// A turn that a message has opened.
    pub(super) fn new(opened_by: u64, at: Timestamp) -> Self {
        Turn {
            opened_by,
            running_since: at,
            announced: Announced::Nothing,
            model_calls: 0,
            tokens: 0,
            cost_nanos: 0,
            waiting: vec![opened_by],
            phase: Phase::Opening,
            compacted_at: None,
            overflows: 0,
            cut_calls: 0,
            failed_calls: FailedCalls::default(),
            expires_at: None,
            over_budget: None,
            allowances: Allowances::new(),
            run: None,
            typing_call: None,
        }
    }

    /// Counts what a model call of the turn, or of a subagent, used.
    pub(super) fn spend(&mut self, usage: Usage) {
        self.tokens = self.tokens.saturating_add(usage.total());
        self.cost_nanos = self.cost_nanos.saturating_add(usage.cost_nanos.unwrap_or(0));
    }

    /// The calls of the step under way.
    pub fn calls(&self) -> &[Call] {
        match &self.phase {
            Phase::Acting { calls, .. } => calls,
            Phase::Opening | Phase::Compacting | Phase::CallingModel => &[],
        }
    }

    /// What it waits for from outside, in the order in which it was raised.
    pub fn pending(&self) -> impl Iterator<Item = PendingAction<'_>> {
        self.calls().iter().flat_map(Call::actions)
    }

    /// The ids of what it waits for.
    pub fn pending_ids(&self) -> Vec<String> {
        self.pending().map(|action| action.id.to_owned()).collect()
    }

    /// Whether it stands still until somebody answers.
    pub fn is_paused(&self) -> bool {
        matches!(self.announced, Announced::Paused(_))
    }
}
