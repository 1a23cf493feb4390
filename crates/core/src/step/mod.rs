//! The pure step of a turn.
//!
//! [`step`] takes the folded state and one input and says which events to append, all of them in one commit.
//! [`effects`] says what must be going on in a given state. There is nothing else to a turn: a driver appends
//! the events, carries out the effects, and feeds back what comes of them. After a crash it folds the log,
//! feeds [`Input::Recover`], and carries on.

mod budget;
mod effects;
mod model;
mod next;
mod run;
mod stop;
mod user;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::conversation::{ConversationChange, CustomerVariables};
use crate::event::{
    ApplicationEvent, Block, ClarifyResult, Compacted, CustomToolResult, Danger, Event, EventMetadataChanged,
    EventsDeleted, Failure, McpTool, MessagePlace, ModelFinished, Payload, PersonMessage, PersonNote,
    Purpose, RequestAnswered, RunOpened, ThreadMessage, Titled, ToolConfirmation, ToolEffect, ToolResult,
    UserInterrupt, UserMessage, UserSteer,
};
use crate::ids::{RequestId, RunId, ToolUseId};
use crate::limits::Limits;
use crate::model::{Opaque, Stop, Usage};
use crate::run::RunError;
use crate::settings::SessionSettings;
use crate::state::{CallKind, Phase, Progress, State, Turn};

pub use effects::{Effect, effects};

/// Something that happened outside the log.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A person or application sent these together: all are taken, or none.
    User {
        /// What was sent, in order.
        events: Vec<UserEvent>,
        /// What the model call under way has said so far, which an interrupt keeps.
        said_so_far: String,
        /// What a turn that this opens is told besides.
        opening: Opening,
    },
    /// A model call ended.
    ModelFinished {
        /// Which call of the turn it was.
        call: u32,
        /// The model, as `provider/model`.
        model: String,
        /// What came of it.
        outcome: Result<PlannedAnswer, Failure>,
    },
    /// The context was made shorter, as far as it can be.
    CompactionFinished {
        /// How many model calls the turn had made.
        call: u32,
        /// What is read from now on.
        compacted: Compacted,
        /// The model call that made the summary, if there was one.
        summary_call: Option<ModelFinished>,
    },
    /// A tool ended.
    ToolFinished {
        /// The call.
        id: String,
        /// What the model is told.
        content: Vec<Block>,
        /// Whether it failed.
        is_error: bool,
    },
    /// A call is about to give work to a subagent.
    ThreadSent {
        /// The call.
        tool_use_id: String,
        /// What the subagent is told.
        message: ThreadMessage,
    },
    /// A subagent is done.
    ThreadReceived {
        /// The call.
        tool_use_id: String,
        /// What the subagent says.
        message: ThreadMessage,
    },
    /// A run begins: a turn that nobody attends.
    RunStarted {
        /// The run.
        opened: RunOpened,
        /// What it works on.
        message: UserMessage,
        /// What its turn is told besides.
        opening: Opening,
    },
    /// A run is ended from outside. If it is not the one under way, or settled by now, nothing happens.
    RunEnded {
        /// The run.
        run_id: RunId,
        /// Why.
        error: RunError,
    },
    /// The turn has run for as long as it may.
    DeadlinePassed,
    /// The time for answers may be over.
    ActionsExpired,
    /// Whoever drove this session is gone, and everything that was under way with it.
    Recover {
        /// The requests whose passwords are still at hand.
        passwords: Vec<String>,
    },
    /// What a person or application notes about the session changes, all of it or nothing.
    Change(Change),
    /// The session is put away; a turn under way is stopped.
    Archive,
}

/// What changes about a session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    /// The new title.
    pub title: Option<Titled>,
    /// The whole metadata after the change.
    pub metadata: Option<Map<String, Value>>,
    /// Who answers, and what the application has read. A person who takes over ends the turn under way.
    pub conversation: Option<ConversationChange>,
}

/// What a turn is told when it opens, besides what opens it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Opening {
    /// What the system prompt of the session holds besides the instructions, if this is its first turn.
    pub prompt: Option<String>,
    /// What is known about the customer, if that is not what the turn before was told.
    pub customer: Option<CustomerVariables>,
}

/// What a person or application can send.
#[derive(Debug, Clone, PartialEq)]
pub enum UserEvent {
    /// Opens a turn.
    Message(UserMessage),
    /// Opens a turn, and ends the one under way if there is one.
    Supersede(UserMessage),
    /// Guides the turn under way, or the next one.
    Steer(UserSteer),
    /// Ends the turn under way.
    Interrupt(UserInterrupt),
    /// Allows or denies a tool call.
    ToolConfirmation(ToolConfirmation),
    /// Answers a call of the application's own tool.
    CustomToolResult(CustomToolResult),
    /// Answers for a tool of ours that waits for a person: it does not run, and this is its result.
    ToolResult(CustomToolResult),
    /// Answers a question.
    ClarifyResult(ClarifyResult),
    /// A sudo password came. The caller keeps it.
    SudoResult(RequestAnswered),
    /// A secret came. The caller keeps it.
    SecretResult(RequestAnswered),
    /// Replaces the settings of the session.
    Settings(SessionSettings),
    /// A person says something to the user.
    PersonMessage(PersonMessage),
    /// A person says something to the agent. If the agent is to act on it, the turn under way ends.
    PersonNote(PersonNote),
    /// An application adds something for its own readers.
    Application(ApplicationEvent),
    /// Something about the conversation changes. A person who takes over ends the turn under way.
    Conversation(ConversationChange),
    /// Deletes what the log has from an entry on, and ends the turn under way.
    DeleteEvents(EventsDeleted),
    /// Changes the metadata of an entry.
    EventMetadata(EventMetadataChanged),
}

/// A model's answer, with what is to be done about each of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAnswer {
    /// What it said, in order.
    pub parts: Vec<PlannedPart>,
    /// What it cost.
    pub usage: Usage,
    /// Why it stopped.
    pub stop: Stop,
}

/// A part of a model's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedPart {
    /// Reasoning.
    Thinking {
        /// The readable part.
        text: String,
        /// What the provider wants back.
        opaque: Option<Opaque>,
    },
    /// Text.
    Text(String),
    /// A tool call.
    Call(PlannedCall),
}

/// A tool call, with what is to be done about it.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannedCall {
    /// We or an MCP server can carry it out.
    Tool {
        /// Names the call.
        id: ToolUseId,
        /// Whose tool it is.
        kind: ToolKind,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Map<String, Value>,
        /// Whether it changes anything.
        effect: ToolEffect,
        /// One line for people.
        preview: Option<String>,
        /// Whether it may run.
        permission: Permission,
        /// A sudo password that it needs.
        sudo: Option<(RequestId, String)>,
    },
    /// The application carries it out.
    Custom {
        /// Names the call.
        id: ToolUseId,
        /// The tool.
        tool: String,
        /// Its arguments.
        input: Map<String, Value>,
    },
    /// The user is asked.
    Clarify {
        /// Names the question.
        request_id: RequestId,
        /// The question.
        question: String,
        /// Offered answers.
        choices: Option<Vec<String>>,
    },
    /// The user is asked for a secret.
    Secret {
        /// Names the request.
        request_id: RequestId,
        /// The environment variable that will hold it.
        name: String,
        /// What to tell the user.
        prompt: String,
    },
    /// The output of a run.
    Output {
        /// Names the call.
        id: ToolUseId,
        /// Its arguments.
        input: Map<String, Value>,
        /// What they come to.
        emitted: Emitted,
    },
}

/// What a call of `emit_output` comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum Emitted {
    /// Output that fits.
    Fits(Map<String, Value>),
    /// Output that does not fit its schema. The run fails.
    Breaks(RunError),
    /// No output at all. The model is told why, and may call again.
    Unreadable(String),
}

/// Whose tool a call is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolKind {
    /// Ours.
    Builtin,
    /// An MCP server's.
    Mcp(McpTool),
}

/// Whether a call may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It runs.
    Run,
    /// A person decides, unless the tool was allowed for the session.
    Ask,
    /// A person decides, unless this danger was allowed for the session.
    AskAbout(Danger),
    /// It never runs, and the model is told why.
    Refuse(String),
}

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
    #[error("{id} is not pending; {}", pending_text(pending))]
    NotPending {
        /// The id in the answer.
        id: String,
        /// What is pending.
        pending: Vec<String>,
    },
    /// Something waits for another kind of answer under this id.
    #[error("{id} is answered by {expected}, not by {got}")]
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
    /// The session was archived.
    #[error("the session is archived and takes no more events; create a new session")]
    Archived,
}

fn list(ids: &[String]) -> String {
    ids.join(", ")
}

fn pending_text(pending: &[String]) -> String {
    if pending.is_empty() { "nothing is".to_owned() } else { format!("pending: {}", list(pending)) }
}

/// Says what one input appends to the log. The state itself is not changed; fold the events to do that.
pub fn step(state: &State, input: Input, limits: &Limits, now: Timestamp) -> Result<Vec<Event>, Refusal> {
    let mut step = Step { state: state.clone(), limits, now, events: Vec::new() };
    match input {
        Input::User { events, said_so_far, opening } => step.user(events, &said_so_far, opening)?,
        Input::ModelFinished { call, model, outcome } => step.model_finished(call, model, outcome),
        Input::CompactionFinished { call, compacted, summary_call } => {
            step.compaction_finished(call, compacted, summary_call);
        }
        Input::ToolFinished { id, content, is_error } => step.tool_finished(&id, content, is_error),
        Input::ThreadSent { tool_use_id, message } => {
            if step.thread(&tool_use_id, &message, None) {
                step.emit(Payload::ThreadMessageSent(message));
            }
        }
        Input::ThreadReceived { tool_use_id, message } => {
            if step.thread(&tool_use_id, &message, Some(false)) {
                step.emit(Payload::ThreadMessageReceived(message));
            }
        }
        Input::RunStarted { opened, message, opening } => step.start_run(opened, message, opening)?,
        Input::RunEnded { run_id, error } => step.end_run(&run_id, error),
        Input::DeadlinePassed => step.deadline_passed(),
        Input::ActionsExpired => step.actions_expired(),
        Input::Recover { passwords } => step.recover(&passwords),
        Input::Change(change) => step.change(change)?,
        Input::Archive => step.archive(),
    }
    while let Some(payload) = next::next(&step.state, step.limits) {
        step.emit(payload);
    }
    Ok(step.events)
}

/// A step under way: a scratch copy of the state that already contains what was emitted.
struct Step<'a> {
    state: State,
    limits: &'a Limits,
    now: Timestamp,
    events: Vec<Event>,
}

impl Step<'_> {
    fn emit(&mut self, payload: Payload) {
        let waits = match payload {
            // An interrupt with nothing to interrupt has no effect to wait for.
            Payload::UserInterrupt(_) => self.state.turn.is_some(),
            // What opens no turn waits for none.
            Payload::UserMessage(ref message) => message.place != MessagePlace::Kept,
            _ => payload.is_from_user(),
        };
        let event = Event {
            session_id: self.state.session_id.clone(),
            sequence: self.state.view.last_sequence + 1,
            created_at: self.now,
            processed_at: (!waits).then_some(self.now),
            payload,
        };
        self.state.apply(&event);
        self.events.push(event);
    }

    fn emit_result(&mut self, call: &FinishedCall<'_>) {
        // An id in the log was made by us, so it reads back; if not, there is no call to end.
        let Ok(tool_use_id) = call.id.parse::<ToolUseId>() else { return };
        let result = ToolResult {
            tool_use_id,
            tool: call.tool.to_owned(),
            content: call.content.clone(),
            is_error: call.is_error,
        };
        self.emit(match call.kind {
            CallKind::Mcp => Payload::McpToolResult(result),
            _ => Payload::ToolResult(result),
        });
    }

    fn tool_finished(&mut self, id: &str, content: Vec<Block>, is_error: bool) {
        let Some(turn) = &self.state.turn else { return };
        // A tool that was stopped or already answered for may still report; its call is closed.
        let Some(call) = turn.calls().iter().find(|call| call.id == id && call.progress == Progress::Started)
        else {
            return;
        };
        let (tool, kind) = (call.tool.clone(), call.kind);
        self.emit_result(&FinishedCall { id, tool: &tool, kind, content, is_error });
    }

    fn compaction_finished(&mut self, call: u32, compacted: Compacted, summary_call: Option<ModelFinished>) {
        let turn = self.state.turn.as_ref();
        // The turn may have moved on without it.
        if !turn.is_some_and(|turn| turn.phase == Phase::Compacting && turn.model_calls == call) {
            return;
        }
        if let Some(finished) = summary_call {
            self.emit(Payload::ModelFinished(ModelFinished { purpose: Purpose::Summary, ..finished }));
        }
        self.emit(Payload::Compacted(compacted));
    }

    /// Whether a call is under way, and knows as much of one of its threads: nothing, or whether it is done.
    fn thread(&self, tool_use_id: &str, message: &ThreadMessage, known: Option<bool>) -> bool {
        let calls = self.state.turn.iter().flat_map(Turn::calls);
        let mut started = calls.filter(|call| call.progress == Progress::Started);
        let call = started.find(|call| call.id == tool_use_id);
        call.is_some_and(|call| call.threads.get(message.thread_id.as_str()).copied() == known)
    }

    fn archive(&mut self) {
        self.interrupt_turn("The session was archived.", String::new());
        if self.state.view.archived_at.is_none() {
            self.emit(Payload::Archived {});
        }
    }
}

/// A call and what the model is told about it.
struct FinishedCall<'a> {
    id: &'a str,
    tool: &'a str,
    kind: CallKind,
    content: Vec<Block>,
    is_error: bool,
}
