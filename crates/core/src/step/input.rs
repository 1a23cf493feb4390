//! What a step is given: something that happened outside the log.

use serde_json::{Map, Value};

use super::PlannedAnswer;
use crate::conversation::{ConversationChange, CustomerVariables};
use crate::event::{
    ApplicationEvent, Block, ClarifyResult, Compacted, CustomToolResult, EventMetadataChanged, EventsDeleted,
    Failure, ModelFinished, PersonMessage, PersonNote, RequestAnswered, RunOpened, ThreadMessage, Titled,
    ToolConfirmation, UserInterrupt, UserMessage, UserSteer,
};
use crate::ids::RunId;
use crate::run::RunError;
use crate::settings::SessionSettings;

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
    /// The first text of a reply arrived from the model. Only conversations are told.
    TextBegan {
        /// Which call of the turn says it.
        call: u32,
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
    /// Hooks put another text in place of a result that came from outside.
    ResultTransformed {
        /// The call.
        tool_use_id: String,
        /// The text that the model reads.
        text: String,
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
        /// What becomes of calls that only read.
        read_only_calls: ReadOnlyCalls,
    },
    /// The turn is given up: the server died over and over while it was under way.
    GivenUp {
        /// What happened and what to do, for people.
        message: String,
    },
    /// What a person or application notes about the session changes, all of it or nothing.
    Change(Change),
    /// The session is put away; a turn under way is stopped.
    Archive,
}

/// What becomes of calls of read-only tools that were under way when the server died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadOnlyCalls {
    /// They are made again.
    #[default]
    RunAgain,
    /// They are not made again: the server died over and over while they were under way.
    SetAside,
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
    /// The whole settings after the change. They change between turns only.
    pub settings: Option<SessionSettings>,
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
