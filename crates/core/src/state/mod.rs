//! Where a session stands: the fold of its log that decides what may happen next.
//!
//! The fold is small whatever the length of the log: it holds the turn under way and totals, never the
//! conversation. It is stored now and then as a checkpoint, so its shape changes only by addition.

mod action;
mod call;
mod calls;
mod run;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::agent::AgentDefinition;
use crate::budget::{Allowances, Budget};
use crate::conversation::Conversation;
use crate::event::{
    Event, Failure, MessagePlace, Payload, Purpose, StopReason, ThreadMessage, TitleSource, ToolUse,
    joined_text,
};
use crate::ids::{EventId, SessionId};
use crate::model::Usage;
use crate::session::{SessionView, Status};
use crate::settings::SessionSettings;
use crate::title;
use crate::tokens::ContextSize;

pub use action::{ActionKind, PendingAction};
pub use call::{Call, CallKind, Progress, SudoNeed};
pub use run::{FailedTool, TurnRun};
pub use turn::{Announced, Phase, Turn};

/// The fold of one session's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// The session.
    pub session_id: SessionId,
    /// What is listed of it.
    pub view: SessionView,
    /// The turn under way, paused or not.
    pub turn: Option<Turn>,
    /// What was said during a turn and no model call has seen yet.
    pub steers: Vec<u64>,
    /// Tools that were allowed for the rest of this session.
    pub allowed_tools: BTreeSet<String>,
    /// Who chose the title, if anybody did.
    pub title_source: Option<TitleSource>,
    /// What we would call the session, from its first message.
    pub suggested_title: Option<String>,
    /// What the session sets for itself; none if it goes by its agent alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SessionSettings>,
    /// Settings that the log names as not reaching a model, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, BTreeSet<String>>,
    /// How often somebody let the session go on over each of its budgets.
    #[serde(default, skip_serializing_if = "Allowances::is_empty")]
    pub allowances: Allowances,
    /// How long the context is.
    #[serde(default)]
    pub context: ContextSize,
    /// Who answers, and what is known about the customer.
    #[serde(default, skip_serializing_if = "Conversation::is_usual")]
    pub conversation: Conversation,
    /// The names of secrets that the user has given, each with the event that says so. Their values are in no log.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, u64>,
}

impl State {
    /// A session whose log is empty.
    pub fn new(session_id: SessionId, view: SessionView) -> Self {
        let title_source = view.title.as_ref().map(|_| TitleSource::User);
        State {
            session_id,
            view,
            turn: None,
            steers: Vec::new(),
            allowed_tools: BTreeSet::new(),
            title_source,
            suggested_title: None,
            settings: None,
            left_out: BTreeMap::new(),
            allowances: Allowances::new(),
            context: ContextSize::default(),
            conversation: Conversation::default(),
            secrets: BTreeMap::new(),
        }
    }

    /// The id of the message that opened the turn under way.
    pub fn turn_id(&self) -> Option<EventId> {
        let sequence = self.turn.as_ref()?.opened_by;
        Some(EventId { session_id: self.session_id.clone(), sequence })
    }

    /// The model that the session talks to.
    pub fn model<'a>(&'a self, agent: &'a AgentDefinition) -> &'a str {
        let own = self.settings.as_ref().and_then(|settings| settings.model.as_deref());
        own.unwrap_or(&agent.model)
    }

    /// What the turn under way waits for from outside.
    pub fn pending(&self) -> impl Iterator<Item = PendingAction<'_>> {
        self.turn.iter().flat_map(Turn::pending)
    }

    /// Whether a call under way waits for this subagent.
    pub fn waits_for(&self, thread_id: &str) -> bool {
        let calls = self.turn.iter().flat_map(Turn::calls);
        let mut started = calls.filter(|call| call.progress == Progress::Started);
        started.any(|call| call.threads.get(thread_id) == Some(&false))
    }

    /// Takes the next event of the log into account.
    pub fn apply(&mut self, event: &Event) {
        self.view.last_sequence = event.sequence;
        self.view.updated_at = event.created_at;
        self.context.apply(&event.payload);
        match &event.payload {
            Payload::UserMessage(message) => {
                if self.title_source.is_none() && self.suggested_title.is_none() {
                    self.suggested_title = title::from_first_message(&joined_text(&message.content));
                }
                match message.place {
                    MessagePlace::OpensTurn => {}
                    MessagePlace::JoinsTurn => return self.steers.push(event.sequence),
                    MessagePlace::Seeded | MessagePlace::Kept => return,
                }
                self.turn = Some(Turn::new(event.sequence, event.created_at));
            }
            Payload::PersonNote(note) if note.opens_turn => {
                // Nothing of the user's waits to be taken up.
                self.turn = Some(Turn { waiting: Vec::new(), ..Turn::new(event.sequence, event.created_at) });
            }
            Payload::ConversationChanged(change) => self.conversation.change(change),
            Payload::CustomerVariables(known) => self.conversation.variables.clone_from(&known.variables),
            Payload::UserSteer(_) => self.steers.push(event.sequence),
            Payload::StatusRunning {} => {
                self.view.status = Status::Running;
                if let Some(turn) = &mut self.turn {
                    turn.announced = Announced::Running;
                    turn.running_since = event.created_at;
                    turn.expires_at = None;
                }
            }
            Payload::StatusIdle(idle) => self.apply_idle(&idle.stop_reason),
            Payload::Titled(titled) => {
                self.view.title.clone_from(&titled.title);
                self.title_source = Some(titled.source);
            }
            Payload::MetadataChanged { metadata } => self.view.metadata.clone_from(metadata),
            Payload::SettingsChanged(settings) => self.settings = Some(settings.clone()),
            Payload::ModelSettingsLeftOut(named) => {
                self.left_out.entry(named.model.clone()).or_default().extend(named.settings.iter().cloned());
            }
            Payload::Archived {} => self.view.archived_at = Some(event.created_at),
            Payload::ModelStarted(started) => {
                self.steers.retain(|sequence| !started.takes_up.contains(sequence));
                if let Some(turn) = &mut self.turn {
                    turn.waiting.clear();
                    turn.model_calls = started.call;
                    turn.phase = Phase::CallingModel;
                }
            }
            Payload::Typing {} => {
                if let Some(turn) = &mut self.turn {
                    turn.typing_call = Some(turn.model_calls);
                }
            }
            Payload::RunOpened(_) | Payload::RunReminded(_) | Payload::RunSettled(_) => {
                self.apply_to_run(&event.payload);
            }
            Payload::CompactionStarted(_) => {
                if let Some(turn) = &mut self.turn {
                    turn.compacted_at = Some(turn.model_calls);
                    turn.phase = Phase::Compacting;
                }
            }
            Payload::Compacted(_) => {
                if let Some(turn) = self.turn.as_mut().filter(|turn| turn.phase == Phase::Compacting) {
                    turn.phase = Phase::Opening;
                }
            }
            Payload::ModelFinished(finished) => {
                self.view.usage += finished.usage;
                self.view.model_calls += 1;
                if let Some(turn) = &mut self.turn {
                    turn.spend(finished.usage);
                    if finished.purpose == Purpose::Summary {
                        return;
                    }
                    let overflow = finished.error.as_ref().is_some_and(Failure::is_context_too_long);
                    turn.cut_calls = if finished.cut_call { turn.cut_calls.saturating_add(1) } else { 0 };
                    turn.overflows = if overflow { turn.overflows.saturating_add(1) } else { 0 };
                    turn.phase = Phase::Acting {
                        calls: Vec::new(),
                        cut_short: finished.cut_short,
                        error: finished.error.clone(),
                    };
                }
            }
            _ => {
                if let Payload::ThreadMessageReceived(ThreadMessage { spent: Some(spent), .. }) =
                    &event.payload
                {
                    self.spend(spent.usage, spent.model_calls);
                }
                if let Payload::ToolUse(ToolUse { budget: Some(budget), preview, .. }) = &event.payload {
                    self.apply_over_budget(*budget, preview.clone().unwrap_or_default());
                }
                self.apply_to_calls(event);
            }
        }
    }

    /// The turn stops in front of a budget. What it did so far is done, so the question is all there is to deal with.
    fn apply_over_budget(&mut self, budget: Budget, message: String) {
        if let Some(turn) = &mut self.turn {
            turn.over_budget = Some(Failure { code: budget.code().to_owned(), message });
            turn.phase = Phase::Acting { calls: Vec::new(), cut_short: None, error: None };
        }
    }

    /// Counts what a subagent spent as the session's own.
    fn spend(&mut self, usage: Usage, model_calls: u64) {
        self.view.usage += usage;
        self.view.model_calls += model_calls;
        if let Some(turn) = &mut self.turn {
            turn.spend(usage);
        }
    }

    fn apply_idle(&mut self, stop_reason: &StopReason) {
        self.view.status = Status::Idle;
        self.view.stop_reason = Some(stop_reason.clone());
        match (stop_reason, &mut self.turn) {
            (StopReason::RequiresAction { event_ids, expires_at }, Some(turn)) => {
                turn.announced = Announced::Paused(event_ids.clone());
                turn.expires_at = *expires_at;
            }
            _ => self.turn = None,
        }
    }
}
