//! Where a session stands: the fold of its log that decides what may happen next.
//!
//! The fold is small whatever the length of the log: it holds the turn under way and totals, never the
//! conversation. It is stored now and then as a checkpoint, so its shape changes only by addition.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::event::{
    CutShort, Danger, Event, Failure, MessagePlace, Payload, Purpose, Scope, StopReason, ThreadMessage,
    TitleSource, ToolEffect, ToolUse, Verdict, joined_text,
};
use crate::ids::{EventId, SessionId};
use crate::model::Usage;
use crate::session::{SessionView, Status};
use crate::settings::SessionSettings;
use crate::title;
use crate::tokens::ContextSize;

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
    /// How long the context is.
    #[serde(default)]
    pub context: ContextSize,
}

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

/// One tool call of the step under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The tool-use id, or the request id of a question.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// Who carries it out.
    pub kind: CallKind,
    /// Its arguments.
    pub input: Map<String, Value>,
    /// Whether it changes anything.
    pub effect: ToolEffect,
    /// Whether it was ever put to a person, so that it starts only with the others that were.
    pub asked: bool,
    /// A sudo password that it needs.
    pub sudo: Option<SudoNeed>,
    /// How far it is.
    pub progress: Progress,
    /// When the model asked for it.
    pub created_at: Timestamp,
    /// Why a person is asked, when it is not the policy that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub danger: Option<Danger>,
    /// The subagents that it gave work to, and whether they are done.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, bool>,
}

/// Who carries out a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// We do.
    Builtin,
    /// An MCP server does.
    Mcp,
    /// The application does.
    Custom,
    /// The user answers a question.
    Clarify,
    /// The user supplies a secret.
    Secret,
}

/// A sudo password that a call needs before it can start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SudoNeed {
    /// What the answer refers to.
    pub request_id: String,
    /// The command.
    pub command: String,
    /// Whether the password came.
    pub answered: bool,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// Somebody outside has to answer.
    Waiting,
    /// It may start.
    Ready,
    /// A person said no.
    Denied {
        /// Why.
        reason: Option<String>,
    },
    /// Its start is in the log.
    Started,
    /// Its result is in the log.
    Done,
}

/// Something that a turn waits for from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingAction<'a> {
    /// What the answer refers to.
    pub id: &'a str,
    /// What kind of answer it takes.
    pub kind: ActionKind,
    /// The call that raised it.
    pub call: &'a Call,
}

/// The kinds of answers that a turn can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionKind {
    /// `user.tool_confirmation`
    ToolConfirmation,
    /// `user.custom_tool_result`
    CustomTool,
    /// `user.clarify_result`
    Clarify,
    /// `user.sudo_result`
    Sudo,
    /// `user.secret_result`
    Secret,
}

impl ActionKind {
    /// The event that answers it.
    pub fn answered_by(self) -> &'static str {
        match self {
            ActionKind::ToolConfirmation => "user.tool_confirmation",
            ActionKind::CustomTool => "user.custom_tool_result",
            ActionKind::Clarify => "user.clarify_result",
            ActionKind::Sudo => "user.sudo_result",
            ActionKind::Secret => "user.secret_result",
        }
    }
}

impl Call {
    /// What is remembered when a person allows it for longer than this once.
    pub fn grant(&self) -> String {
        self.danger.as_ref().map_or_else(|| self.tool.clone(), Danger::grant)
    }

    fn actions(&self) -> impl Iterator<Item = PendingAction<'_>> {
        let kind = match self.kind {
            CallKind::Builtin | CallKind::Mcp => ActionKind::ToolConfirmation,
            CallKind::Custom => ActionKind::CustomTool,
            CallKind::Clarify => ActionKind::Clarify,
            CallKind::Secret => ActionKind::Secret,
        };
        let own =
            (self.progress == Progress::Waiting).then_some(PendingAction { id: &self.id, kind, call: self });
        let may_start = matches!(self.progress, Progress::Waiting | Progress::Ready);
        let sudo = self.sudo.as_ref().filter(|sudo| may_start && !sudo.answered).map(|sudo| PendingAction {
            id: &sudo.request_id,
            kind: ActionKind::Sudo,
            call: self,
        });
        own.into_iter().chain(sudo)
    }
}

impl Turn {
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
            context: ContextSize::default(),
        }
    }

    /// The id of the message that opened the turn under way.
    pub fn turn_id(&self) -> Option<EventId> {
        let sequence = self.turn.as_ref()?.opened_by;
        Some(EventId { session_id: self.session_id.clone(), sequence })
    }

    /// What the turn under way waits for from outside.
    pub fn pending(&self) -> impl Iterator<Item = PendingAction<'_>> {
        self.turn.iter().flat_map(Turn::pending)
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
                    MessagePlace::Seeded => return,
                }
                self.turn = Some(Turn {
                    opened_by: event.sequence,
                    running_since: event.created_at,
                    announced: Announced::Nothing,
                    model_calls: 0,
                    tokens: 0,
                    cost_nanos: 0,
                    waiting: vec![event.sequence],
                    phase: Phase::Opening,
                    compacted_at: None,
                    overflows: 0,
                });
            }
            Payload::UserSteer(_) => self.steers.push(event.sequence),
            Payload::StatusRunning {} => {
                self.view.status = Status::Running;
                if let Some(turn) = &mut self.turn {
                    turn.announced = Announced::Running;
                    turn.running_since = event.created_at;
                }
            }
            Payload::StatusIdle(idle) => self.apply_idle(&idle.stop_reason),
            Payload::Titled(titled) => {
                self.view.title.clone_from(&titled.title);
                self.title_source = Some(titled.source);
            }
            Payload::MetadataChanged { metadata } => self.view.metadata.clone_from(metadata),
            Payload::SettingsChanged(settings) => self.settings = Some(settings.clone()),
            Payload::Archived {} => self.view.archived_at = Some(event.created_at),
            Payload::ModelStarted(started) => {
                self.steers.retain(|sequence| !started.takes_up.contains(sequence));
                if let Some(turn) = &mut self.turn {
                    turn.waiting.clear();
                    turn.model_calls = started.call;
                    turn.phase = Phase::CallingModel;
                }
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
                    turn.tokens = turn.tokens.saturating_add(finished.usage.total());
                    turn.cost_nanos = turn.cost_nanos.saturating_add(finished.usage.cost_nanos.unwrap_or(0));
                    if finished.purpose == Purpose::Summary {
                        return;
                    }
                    let overflow = finished.error.as_ref().is_some_and(Failure::is_context_too_long);
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
                self.apply_to_calls(event);
            }
        }
    }

    /// Counts what a subagent spent as the session's own.
    fn spend(&mut self, usage: Usage, model_calls: u64) {
        self.view.usage += usage;
        self.view.model_calls += model_calls;
        if let Some(turn) = &mut self.turn {
            turn.tokens = turn.tokens.saturating_add(usage.total());
        }
    }

    fn apply_idle(&mut self, stop_reason: &StopReason) {
        self.view.status = Status::Idle;
        self.view.stop_reason = Some(stop_reason.clone());
        match (stop_reason, &mut self.turn) {
            (StopReason::RequiresAction { event_ids }, Some(turn)) => {
                turn.announced = Announced::Paused(event_ids.clone());
            }
            _ => self.turn = None,
        }
    }

    fn apply_to_calls(&mut self, event: &Event) {
        let Some(turn) = &mut self.turn else { return };
        if event.payload.is_from_user() {
            turn.waiting.push(event.sequence);
        }
        let Phase::Acting { calls, .. } = &mut turn.phase else { return };
        let at = event.created_at;
        match &event.payload {
            Payload::ToolUse(tool_use) => calls.push(Call::of_tool(CallKind::Builtin, tool_use, at)),
            Payload::McpToolUse(tool_use) => calls.push(Call::of_tool(CallKind::Mcp, tool_use, at)),
            Payload::CustomToolUse(custom) => {
                let (id, tool) = (custom.id.as_str(), custom.tool.as_str());
                calls.push(Call::of_question(CallKind::Custom, id, tool, custom.input.clone(), at));
            }
            Payload::ClarifyRequest(request) => {
                let id = request.request_id.as_str();
                calls.push(Call::of_question(CallKind::Clarify, id, "clarify", request.input(), at));
            }
            Payload::SecretRequest(request) => {
                let id = request.request_id.as_str();
                calls.push(Call::of_question(CallKind::Secret, id, "request_secret", request.input(), at));
            }
            Payload::SudoRequest(request) => {
                if let Some(call) = calls.iter_mut().find(|call| call.id == request.tool_use_id.as_str()) {
                    call.asked = true;
                    call.sudo = Some(SudoNeed {
                        request_id: request.request_id.as_str().to_owned(),
                        command: request.command.clone(),
                        answered: false,
                    });
                }
            }
            Payload::ThreadMessageSent(message) => set_thread(calls, message, false),
            Payload::ThreadMessageReceived(message) => set_thread(calls, message, true),
            Payload::ToolStarted(started) => set(calls, started.tool_use_id.as_str(), Progress::Started),
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                set(calls, result.tool_use_id.as_str(), Progress::Done);
            }
            Payload::UserCustomToolResult(result) => set(calls, result.tool_use_id.as_str(), Progress::Done),
            Payload::UserClarifyResult(result) => set(calls, result.request_id.as_str(), Progress::Done),
            Payload::UserSecretResult(answered) => set(calls, answered.request_id.as_str(), Progress::Done),
            Payload::UserSudoResult(answered) => {
                let sudo = calls.iter_mut().filter_map(|call| call.sudo.as_mut());
                sudo.filter(|sudo| sudo.request_id == answered.request_id.as_str())
                    .for_each(|sudo| sudo.answered = true);
            }
            Payload::UserToolConfirmation(confirmation) => {
                let id = confirmation.tool_use_id.as_str();
                match confirmation.result {
                    Verdict::Deny => set(calls, id, Progress::Denied { reason: confirmation.reason.clone() }),
                    Verdict::Allow => {
                        set(calls, id, Progress::Ready);
                        if confirmation.scope != Scope::Once {
                            self.allowed_tools.extend(confirmation.tool.clone());
                        }
                    }
                }
            }
            _ => {}
        }
    }
}

fn set_thread(calls: &mut [Call], message: &ThreadMessage, done: bool) {
    let Some(tool_use_id) = &message.tool_use_id else { return };
    if let Some(call) = calls.iter_mut().find(|call| call.id == tool_use_id.as_str()) {
        call.threads.insert(message.thread_id.as_str().to_owned(), done);
    }
}

fn set(calls: &mut [Call], id: &str, progress: Progress) {
    if let Some(call) = calls.iter_mut().find(|call| call.id == id) {
        call.progress = progress;
    }
}

impl Call {
    fn of_tool(kind: CallKind, tool_use: &ToolUse, created_at: Timestamp) -> Self {
        Call {
            id: tool_use.id.as_str().to_owned(),
            tool: tool_use.tool.clone(),
            kind,
            input: tool_use.input.clone(),
            effect: tool_use.effect,
            asked: tool_use.requires_action,
            sudo: None,
            progress: if tool_use.requires_action { Progress::Waiting } else { Progress::Ready },
            created_at,
            danger: tool_use.danger.clone(),
            threads: BTreeMap::new(),
        }
    }

    fn of_question(
        kind: CallKind,
        id: &str,
        tool: &str,
        input: Map<String, Value>,
        created_at: Timestamp,
    ) -> Self {
        Call {
            id: id.to_owned(),
            tool: tool.to_owned(),
            kind,
            input,
            effect: ToolEffect::ReadOnly,
            asked: true,
            sudo: None,
            progress: Progress::Waiting,
            created_at,
            danger: None,
            threads: BTreeMap::new(),
        }
    }
}
