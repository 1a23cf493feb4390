//! What a model reads: the fold of a log into a conversation.
//!
//! Every tool call has exactly one result here, in the order of the calls, whatever order the log has and
//! whether or not the call was ever carried out: providers refuse anything else.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};

use crate::compaction::{shortened, summary_message};
use crate::event::{
    Block, Compacted, Event, MessagePlace, Payload, StopReason, ToolResultTransformed, joined_text,
};
use crate::failed_calls::{FailedCalls, call_key};
use crate::model::{AssistantPart, Message, Opaque, ToolOutcome};
use crate::weight;

/// What is said of a call that nobody answered before the conversation went on.
pub const NOT_EXECUTED: &str = "This call was not executed.";
/// What is said of a call that nobody answered before its turn was stopped.
pub const STOPPED: &str = "This call was not executed: the turn was stopped.";
/// What is said of a call that waited for somebody who never answered.
pub const NOBODY_ANSWERED: &str = "nobody answered in time";
/// What is said of a secret, in place of the secret.
pub const SECRET_SUPPLIED: &str =
    "The user supplied it. It is set in the environment of this session's commands.";
/// The tool whose last result says what is still to be done.
const TODO: &str = "todo";

/// The conversation so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// Messages with the sequence of the event that completed them.
    messages: Vec<(u64, Message)>,
    /// Whether what the agent says next belongs to a new message.
    fresh: bool,
    /// The calls of the last assistant message, until all have results.
    open: Vec<OpenCall>,
    /// The failed calls of the newest turn, which the model is told about when it repeats them.
    failed: FailedCalls,
    /// The model calls so far, by which answers are told apart.
    answers: u32,
    /// What the provider wants back with the calls of the last answer that are still to come.
    call_data: VecDeque<Option<Opaque>>,
    /// Calls whose results came from outside and that the model has not answered yet.
    from_outside: Vec<String>,
    /// What was said during a turn and no model call has seen yet.
    steers: BTreeMap<u64, Vec<Block>>,
    /// What others said while calls were open: it is read after their results.
    asides: Vec<String>,
    /// What is known about the customer, with the event that said so.
    customer: Option<(u64, String)>,
    /// The event that opened the newest turn.
    opened_by: u64,
    /// What it said.
    task: String,
    /// The newest list of what is to be done, with the event that completed its message.
    todo: Option<(u64, String)>,
    /// What the system prompt holds besides the instructions.
    prompt: Option<String>,
    /// System messages that came with the session.
    system: Vec<String>,
    /// What the system prompt says of the run under way.
    run: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct OpenCall {
    id: String,
    name: String,
    /// Names what was called, for [`FailedCalls`].
    key: u64,
    result: Option<(Vec<Block>, bool)>,
}

impl OpenCall {
    fn bytes(&self) -> usize {
        let result = self.result.as_ref().map_or(0, |(content, _)| weight::of_blocks(content));
        size_of::<OpenCall>() + self.id.len() + self.name.len() + result
    }

    /// What the model is told; `otherwise` if nobody said.
    fn outcome(self, otherwise: &str) -> ToolOutcome {
        let (content, is_error) = self.result.unwrap_or_else(|| (vec![Block::text(otherwise)], true));
        let (text, images) = (joined_text(&content), image_urls(content));
        ToolOutcome { id: self.id, name: self.name, text, images, is_error }
    }
}

impl Context {
    /// The conversation, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.messages.iter().map(|(_, message)| message.clone()).collect()
    }

    /// Takes all messages out of it, oldest first.
    pub fn take_messages(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.messages).into_iter().map(|(_, message)| message).collect()
    }

    /// Takes those messages out of it, oldest first, that no later event changes, unless it is a compaction.
    pub fn take_settled(&mut self) -> Vec<Message> {
        // The agent may go on with the last message.
        let last = self.messages.len().saturating_sub(1);
        // Hooks may put another text in place of results that the model has not answered yet.
        let is_result = |(_, message): &(u64, Message)| matches!(message, Message::ToolResults(_));
        let results = self.messages.iter().rposition(is_result).filter(|_| !self.from_outside.is_empty());
        let settled = self.messages.drain(..results.unwrap_or(last).min(last));
        settled.map(|(_, message)| message).collect()
    }

    /// About how much memory it takes, with what waits for the next model call.
    pub fn bytes(&self) -> usize {
        let noted = self.customer.iter().chain(&self.todo).map(|(_, text)| text);
        let texts = self.system.iter().chain(&self.prompt).chain(&self.run).chain(&self.asides).chain(noted);
        let texts: usize = texts.chain([&self.task]).map(|text| weight::of_text(text)).sum();
        let messages: usize = self.messages.iter().map(|(_, message)| weight::of_message(message)).sum();
        let steers: usize =
            self.steers.values().map(|content| size_of::<u64>() + weight::of_blocks(content)).sum();
        let open: usize = self.open.iter().map(OpenCall::bytes).sum();
        let texts = texts + self.from_outside.iter().map(|id| weight::of_text(id)).sum::<usize>();
        texts + messages + steers + open
    }

    /// The system prompt of an agent with these instructions.
    pub fn system(&self, instructions: &str) -> String {
        let told = self.system.iter().chain(&self.prompt).chain(&self.run);
        let parts = std::iter::once(instructions).chain(told.map(String::as_str));
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
    }

    /// System messages that came with the session.
    pub fn system_messages(&self) -> &[String] {
        &self.system
    }

    /// Results of the last step that are there already while others are missing.
    pub fn open_results(&self) -> Vec<ToolOutcome> {
        let done = self.open.iter().filter(|call| call.result.is_some()).cloned();
        done.map(|call| call.outcome(NOT_EXECUTED)).collect()
    }

    /// Calls whose results came from outside, which hooks may put another text in place of before the model reads them.
    pub fn results_from_outside(&self) -> &[String] {
        &self.from_outside
    }

    /// The place among the messages of the one that opened the newest turn.
    pub fn turn_message(&self) -> Option<usize> {
        let opened = self.messages.iter().position(|(sequence, _)| *sequence == self.opened_by);
        // If it was summarised, the summary stands for it.
        opened.or_else(|| self.messages.first().filter(|(sequence, _)| *sequence > self.opened_by).map(|_| 0))
    }

    /// The messages with the sequence of the event that completed each.
    pub(crate) fn numbered(&self) -> &[(u64, Message)] {
        &self.messages
    }

    /// What the user said to open the newest turn.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// What the newest turn is about, if none of its message is after this event.
    pub(crate) fn task_through(&self, through: u64) -> Option<&str> {
        (self.opened_by <= through && !self.task.is_empty()).then_some(self.task.as_str())
    }

    /// The newest list of what is to be done, if it is not after this event.
    pub(crate) fn todo_through(&self, through: u64) -> Option<&str> {
        self.todo.as_ref().filter(|(sequence, _)| *sequence <= through).map(|(_, text)| text.as_str())
    }

    /// Takes the next event of the log into account.
    pub fn apply(&mut self, event: &Event) {
        let at = event.sequence;
        match &event.payload {
            Payload::UserMessage(message) if message.place == MessagePlace::JoinsTurn => {
                self.steers.insert(at, message.content.clone());
            }
            Payload::UserMessage(message) if message.place == MessagePlace::Kept => {
                self.aside(at, joined_text(&message.content));
            }
            Payload::UserMessage(message) => {
                self.close_calls(at, NOT_EXECUTED);
                self.messages.push((at, Message::User(message.content.clone())));
                self.opened_by = at;
                self.failed = FailedCalls::default();
                self.task = joined_text(&message.content);
            }
            Payload::PersonMessage(message) => self.aside(at, message.told()),
            Payload::PersonNote(note) if note.opens_turn => self.open_turn(at, note.told()),
            Payload::PersonNote(note) => self.aside(at, note.told()),
            Payload::CustomerVariables(known) => {
                self.close_calls(at, NOT_EXECUTED);
                self.customer = Some((at, known.told()));
                self.messages.push((at, Message::User(vec![Block::text(known.told())])));
            }
            Payload::UserSteer(steer) => {
                let text = format!("[Guidance from the user while you work]\n{}", steer.message);
                self.steers.insert(at, vec![Block::text(text)]);
            }
            Payload::ModelStarted(started) => {
                self.begin_message(at);
                self.answers = self.answers.saturating_add(1);
                for sequence in &started.takes_up {
                    if let Some(content) = self.steers.remove(sequence) {
                        self.messages.push((at, Message::User(content)));
                    }
                }
            }
            Payload::ModelFinished(finished) => self.call_data = finished.call_data.iter().cloned().collect(),
            Payload::MessageSeeded {} => self.begin_message(at),
            Payload::RunOpened(opened) => self.run = Some(opened.job.instructions()),
            Payload::RunReminded(reminded) => {
                self.begin_message(at);
                self.messages.push((at, Message::User(vec![Block::text(reminded.text.clone())])));
            }
            Payload::RunSettled(_) => self.run = None,
            Payload::SystemMessage(message) => self.system.push(message.text.clone()),
            Payload::AgentThinking(thinking) => {
                let (text, opaque) = (thinking.text.clone(), thinking.opaque.clone());
                self.say(at, AssistantPart::Thinking { text, opaque });
            }
            Payload::AgentMessage(message) => self.say(at, AssistantPart::Text(message.text.clone())),
            // A question of ours, which is no business of the model.
            Payload::ToolUse(call) if call.budget.is_some() => {}
            Payload::ToolUse(call) | Payload::McpToolUse(call) => {
                self.call(at, call.id.as_str(), &call.tool, call.input.clone());
            }
            Payload::CustomToolUse(call) => self.call(at, call.id.as_str(), &call.tool, call.input.clone()),
            Payload::ClarifyRequest(request) => {
                self.call(at, request.request_id.as_str(), "clarify", request.input());
            }
            Payload::SecretRequest(request) => {
                self.call(at, request.request_id.as_str(), "request_secret", request.input());
            }
            Payload::StatusIdle(idle) if !matches!(idle.stop_reason, StopReason::RequiresAction { .. }) => {
                self.close_calls(at, STOPPED);
            }
            // The end of a turn may be among what was deleted.
            Payload::EventsDeleted(_) => self.close_calls(at, STOPPED),
            Payload::CompactionStarted(_) => {
                self.begin_message(at);
            }
            Payload::Compacted(compacted) => self.compact(compacted),
            Payload::PromptPrepared(prepared) => self.prompt = Some(prepared.text.clone()),
            _ => self.apply_result(&event.payload),
        }
    }

    fn apply_result(&mut self, payload: &Payload) {
        match payload {
            Payload::ToolResult(result) | Payload::McpToolResult(result) => {
                self.result(result.tool_use_id.as_str(), result.content.clone(), result.is_error);
            }
            Payload::UserCustomToolResult(result) => {
                self.outside_result(result.tool_use_id.as_str(), result.content.clone(), result.is_error);
            }
            Payload::UserClarifyResult(result) => {
                self.outside_result(result.request_id.as_str(), vec![Block::text(result.told())], false);
            }
            Payload::UserSecretResult(answered) => {
                self.outside_result(answered.request_id.as_str(), vec![Block::text(SECRET_SUPPLIED)], false);
            }
            Payload::ActionExpired(expired) => {
                if let Some(text) = expired.told() {
                    self.outside_result(&expired.id, vec![Block::text(text)], true);
                }
            }
            Payload::ToolResultTransformed(transformed) => self.transform_result(transformed),
            _ => {}
        }
    }

    /// Lets the model read another text in place of a result.
    pub fn transform_result(&mut self, transformed: &ToolResultTransformed) {
        self.from_outside.retain(|id| *id != transformed.tool_use_id);
        replace_result(self.messages.iter_mut().map(|(_, message)| message), transformed);
    }

    /// What the agent says next belongs to a new message.
    fn begin_message(&mut self, at: u64) {
        self.close_calls(at, NOT_EXECUTED);
        self.fresh = true;
    }

    pub(crate) fn compact(&mut self, compacted: &Compacted) {
        for (sequence, message) in &mut self.messages {
            if let Message::ToolResults(outcomes) = message
                && *sequence <= compacted.pruned
            {
                for outcome in outcomes {
                    outcome.text = shortened(&outcome.text);
                    outcome.images.clear();
                }
            }
        }
        if compacted.through > 0 {
            self.messages.retain(|(sequence, _)| *sequence > compacted.through);
            self.messages.insert(0, (compacted.through, summary_message(&compacted.summary)));
            if let Some((_, told)) = self.customer.as_ref().filter(|(at, _)| *at <= compacted.through) {
                // It is told again only when it changes.
                let told = Message::User(vec![Block::text(told)]);
                self.messages.insert(1, (compacted.through, told));
            }
        }
    }

    /// A person opens a turn by what they tell the agent.
    fn open_turn(&mut self, at: u64, text: String) {
        self.close_calls(at, NOT_EXECUTED);
        self.messages.push((at, Message::User(vec![Block::text(text.clone())])));
        self.opened_by = at;
        self.failed = FailedCalls::default();
        self.task = text;
    }

    /// Somebody says something that no turn waits for. Nothing may come between calls and their results.
    fn aside(&mut self, at: u64, text: String) {
        if self.open.is_empty() {
            self.messages.push((at, Message::User(vec![Block::text(text)])));
        } else {
            self.asides.push(text);
        }
    }

    fn say(&mut self, at: u64, part: AssistantPart) {
        match self.messages.last_mut() {
            Some((sequence, Message::Assistant(parts))) if !self.fresh => {
                *sequence = at;
                parts.push(part);
            }
            _ => self.messages.push((at, Message::Assistant(vec![part]))),
        }
        self.fresh = false;
        // The model has read them as they are.
        self.from_outside.clear();
    }

    fn call(&mut self, at: u64, id: &str, name: &str, input: Map<String, Value>) {
        let opaque = self.call_data.pop_front().flatten();
        let key = call_key(name, &input);
        self.say(at, AssistantPart::ToolCall { id: id.to_owned(), name: name.to_owned(), input, opaque });
        self.open.push(OpenCall { id: id.to_owned(), name: name.to_owned(), key, result: None });
    }

    fn result(&mut self, id: &str, mut content: Vec<Block>, is_error: bool) {
        if let Some(call) = self.open.iter_mut().find(|call| call.id == id && call.result.is_none()) {
            self.failed.note(call.key, &call.name, is_error, self.answers);
            let warning = self.failed.warning(call.key).filter(|_| is_error);
            content.extend(warning.map(|text| Block::text(format!("\n\n{text}"))));
            call.result = Some((content, is_error));
        }
    }

    fn outside_result(&mut self, id: &str, content: Vec<Block>, is_error: bool) {
        self.result(id, content, is_error);
        self.from_outside.push(id.to_owned());
    }

    /// Turns the open calls into one message of results; those without one get `otherwise`.
    fn close_calls(&mut self, at: u64, otherwise: &str) {
        if self.open.is_empty() {
            return;
        }
        let outcomes = std::mem::take(&mut self.open).into_iter().map(|call| call.outcome(otherwise));
        let outcomes: Vec<ToolOutcome> = outcomes.collect();
        if let Some(todo) = outcomes.iter().rev().find(|outcome| outcome.name == TODO && !outcome.is_error) {
            self.todo = Some((at, todo.text.clone()));
        }
        self.messages.push((at, Message::ToolResults(outcomes)));
        let asides = std::mem::take(&mut self.asides);
        self.messages.extend(asides.into_iter().map(|text| (at, Message::User(vec![Block::text(text)]))));
    }
}

/// Puts another text in place of the newest result of a call. Hooks are asked once the next model call has begun, so the
/// message of results is complete by then.
pub fn replace_result<'a>(
    messages: impl IntoIterator<Item = &'a mut Message, IntoIter: DoubleEndedIterator>,
    transformed: &ToolResultTransformed,
) {
    let outcomes = messages.into_iter().rev().filter_map(|message| match message {
        Message::ToolResults(outcomes) => Some(outcomes),
        _ => None,
    });
    if let Some(outcome) = outcomes.flatten().find(|outcome| outcome.id == transformed.tool_use_id) {
        transformed.text.clone_into(&mut outcome.text);
    }
}

fn image_urls(content: Vec<Block>) -> Vec<String> {
    let url = |block| match block {
        Block::Image { url } => Some(url),
        Block::Text { .. } => None,
    };
    content.into_iter().filter_map(url).collect()
}
