//! What a log tells in the words of the protocol.
//!
//! There is one story. A history, the body of a turn in the mode `none`, and both kinds of streams are ways to show it,
//! so they cannot disagree.

use std::collections::{BTreeMap, VecDeque};

use petasos_core::context::{NOT_EXECUTED, SECRET_SUPPLIED, STOPPED};
use petasos_core::event::{Block, Event, MessagePlace, Payload, StopReason, UserMessage};
use serde_json::{Map, Value};

use super::content;
use super::types::{Content, ContentBlock, HistoryMessage};

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fact {
    /// A system message.
    System(String),
    /// The user said this.
    User(Vec<Block>),
    /// What the agent says and calls next is one message.
    NewMessage,
    /// The agent thought this.
    Thinking(String),
    /// The agent said this.
    Text(String),
    /// The agent called a tool.
    Call { id: String, name: String, input: Map<String, Value> },
    /// This came of a call.
    Result { id: String, content: Vec<Block> },
}

/// Tells a log, event by event.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    /// Calls without a result.
    open: Vec<String>,
    /// What users said during a turn and the model has yet to be told.
    waiting: BTreeMap<u64, Vec<Block>>,
    /// What others said while calls were open: nothing comes between calls and their results.
    asides: Vec<Block>,
}

impl Narrator {
    /// Goes on in the middle of a log, where these calls have no result yet.
    pub(super) fn with_open_calls(open: Vec<String>) -> Self {
        Narrator { open, ..Narrator::default() }
    }

    /// What the next event tells.
    pub(super) fn tell(&mut self, event: &Event) -> Vec<Fact> {
        match &event.payload {
            Payload::SystemMessage(message) => vec![Fact::System(message.text.clone())],
            Payload::UserMessage(message) => self.user_message(event.sequence, message),
            Payload::PersonMessage(message) => self.aside(message.told()),
            Payload::PersonNote(note) if note.opens_turn => {
                let mut facts = self.close_calls(NOT_EXECUTED);
                facts.push(Fact::User(vec![Block::text(note.told())]));
                facts
            }
            Payload::PersonNote(note) => self.aside(note.told()),
            Payload::UserSteer(steer) => {
                self.waiting.insert(event.sequence, vec![Block::text(&steer.message)]);
                Vec::new()
            }
            Payload::ModelStarted(started) => {
                let mut facts = self.close_calls(NOT_EXECUTED);
                let taken_up = started.takes_up.iter().filter_map(|sequence| self.waiting.remove(sequence));
                facts.extend(taken_up.map(Fact::User));
                facts.push(Fact::NewMessage);
                facts
            }
            Payload::MessageSeeded {} => vec![Fact::NewMessage],
            Payload::AgentThinking(thinking) if !thinking.text.is_empty() => {
                vec![Fact::Thinking(thinking.text.clone())]
            }
            Payload::AgentMessage(message) if !message.text.is_empty() => {
                vec![Fact::Text(message.text.clone())]
            }
            Payload::StatusIdle(idle) if !matches!(idle.stop_reason, StopReason::RequiresAction { .. }) => {
                self.close_calls(STOPPED)
            }
            payload => self.call(payload).or_else(|| self.result(payload)).into_iter().collect(),
        }
    }

    /// What was said and nobody was told: the end of a story that is told whole.
    pub(super) fn end(self) -> impl Iterator<Item = Fact> {
        let asides = self.asides.into_iter().map(|said| vec![said]);
        asides.chain(self.waiting.into_values()).map(Fact::User)
    }

    fn user_message(&mut self, at: u64, message: &UserMessage) -> Vec<Fact> {
        if message.place == MessagePlace::JoinsTurn {
            self.waiting.insert(at, message.content.clone());
            return Vec::new();
        }
        let mut facts = self.close_calls(NOT_EXECUTED);
        facts.push(Fact::User(message.content.clone()));
        facts
    }

    fn call(&mut self, payload: &Payload) -> Option<Fact> {
        let (id, name, input) = match payload {
            Payload::ToolUse(call) | Payload::McpToolUse(call) => {
                (call.id.as_str(), call.tool.as_str(), call.input.clone())
            }
            Payload::CustomToolUse(call) => (call.id.as_str(), call.tool.as_str(), call.input.clone()),
            Payload::ClarifyRequest(request) => (request.request_id.as_str(), "clarify", request.input()),
            Payload::SecretRequest(request) => {
                (request.request_id.as_str(), "request_secret", request.input())
            }
            _ => return None,
        };
        self.open.push(id.to_owned());
        Some(Fact::Call { id: id.to_owned(), name: name.to_owned(), input })
    }

    fn result(&mut self, payload: &Payload) -> Option<Fact> {
        let (id, content) = match payload {
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                (result.tool_use_id.as_str(), result.content.clone())
            }
            Payload::UserCustomToolResult(result) => (result.tool_use_id.as_str(), result.content.clone()),
            Payload::UserClarifyResult(result) => {
                (result.request_id.as_str(), vec![Block::text(result.told())])
            }
            Payload::UserSecretResult(answered) => {
                (answered.request_id.as_str(), vec![Block::text(SECRET_SUPPLIED)])
            }
            Payload::ActionExpired(expired) => (expired.id.as_str(), vec![Block::text(expired.told()?)]),
            _ => return None,
        };
        let index = self.open.iter().position(|open| open == id)?;
        self.open.remove(index);
        Some(Fact::Result { id: id.to_owned(), content })
    }

    /// A person says something beside the turn, in the words that the model reads.
    fn aside(&mut self, said: String) -> Vec<Fact> {
        self.asides.push(Block::text(said));
        if self.open.is_empty() { self.take_asides().collect() } else { Vec::new() }
    }

    fn take_asides(&mut self) -> impl Iterator<Item = Fact> + use<> {
        std::mem::take(&mut self.asides).into_iter().map(|said| Fact::User(vec![said]))
    }

    /// Every call has a result in the end, also one that nobody carried out.
    fn close_calls(&mut self, why: &str) -> Vec<Fact> {
        let open = std::mem::take(&mut self.open).into_iter();
        let closed = open.map(|id| Fact::Result { id, content: vec![Block::text(why)] });
        closed.chain(self.take_asides()).collect()
    }
}

/// Facts as messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    list: VecDeque<HistoryMessage>,
    /// Whether what the agent says next belongs to a new message.
    fresh: bool,
}

impl Messages {
    /// Adds what happened next.
    pub(super) fn add(&mut self, fact: Fact) {
        match fact {
            Fact::System(content) => self.list.push_back(HistoryMessage::System { content }),
            Fact::User(blocks) => {
                self.list.push_back(HistoryMessage::User { content: content::shown(blocks) });
            }
            Fact::Result { id, content } => {
                self.list
                    .push_back(HistoryMessage::Tool { tool_call_id: id, content: content::shown(content) });
            }
            Fact::NewMessage => self.fresh = true,
            Fact::Thinking(thinking) => self.say(ContentBlock::Thinking { thinking }),
            Fact::Text(text) => self.say(ContentBlock::Text { text }),
            Fact::Call { id, name, input } => {
                self.say(ContentBlock::ToolUse { tool_call_id: id, name, input });
            }
        }
    }

    fn say(&mut self, block: ContentBlock) {
        match self.list.back_mut() {
            Some(HistoryMessage::Assistant { content: Content::Blocks(blocks) }) if !self.fresh => {
                blocks.push(block);
            }
            _ => {
                let content = Content::Blocks(vec![block]);
                self.list.push_back(HistoryMessage::Assistant { content });
            }
        }
        self.fresh = false;
    }

    /// Takes the first of them.
    pub(super) fn take_first(&mut self) -> Option<HistoryMessage> {
        self.list.pop_front().map(plain)
    }

    /// Takes the first of them if it is complete. The agent may go on with the last one.
    pub(super) fn take_complete(&mut self) -> Option<HistoryMessage> {
        if self.list.len() > 1 { self.take_first() } else { None }
    }

    /// All of them.
    pub(super) fn into_list(self) -> Vec<HistoryMessage> {
        self.list.into_iter().map(plain).collect()
    }

    /// What the agent and its tools said: the answer to a turn, without what the application sent itself.
    pub(super) fn into_answer(self) -> Vec<HistoryMessage> {
        let of_agent = |message: &HistoryMessage| {
            matches!(message, HistoryMessage::Assistant { .. } | HistoryMessage::Tool { .. })
        };
        self.into_list().into_iter().filter(of_agent).collect()
    }
}

/// A message as it is shown. What an agent only said is a plain text.
fn plain(message: HistoryMessage) -> HistoryMessage {
    match message {
        HistoryMessage::Assistant { content } => {
            HistoryMessage::Assistant { content: content::plain(content) }
        }
        other => other,
    }
}
