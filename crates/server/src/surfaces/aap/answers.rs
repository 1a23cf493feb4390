//! What the messages of a turn mean for a session: a new turn, or answers to what the turn under way waits for.

use std::collections::{BTreeMap, BTreeSet};

use petasos_core::State;
use petasos_core::event::{
    Block, ClarifyResult, CustomToolResult, MessagePlace, RequestAnswered, Scope, ToolConfirmation,
    UserInterrupt, UserMessage, Verdict, joined_text,
};
use petasos_core::ids::ToolUseId;
use petasos_core::state::{ActionKind, Call, CallKind};
use petasos_core::step::UserEvent;
use secrecy::SecretString;

use super::content;
use super::types::TurnMessage;
use crate::problem::Problem;

/// What a turn sends to its session.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub(super) events: Vec<UserEvent>,
    /// Secrets that were asked for, by request.
    pub(super) secrets: BTreeMap<String, SecretString>,
    /// Calls whose results the application sent itself, and need not be told.
    pub(super) told: BTreeSet<String>,
}

/// One answer to a call, and where it is in the request.
struct Answer {
    path: String,
    call_id: String,
    said: Said,
}

enum Said {
    Result(Vec<Block>),
    Permission { granted: bool, reason: Option<String> },
}

/// Reads the messages of a turn. Nothing of them is sent if anything is wrong with one.
pub(super) fn read(state: &State, messages: &[TurnMessage]) -> Result<Sent, Problem> {
    if messages.is_empty() {
        return Err(Problem::validation("messages", "must hold a user message, or answers to pending calls"));
    }
    let mut said_by_user = Vec::new();
    let mut answers: Vec<Answer> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let path = format!("messages[{index}]");
        let in_content = format!("{path}.content");
        let (call_id, said) = match message {
            TurnMessage::User { content } => {
                join(&mut said_by_user, content::read(content, &in_content)?);
                continue;
            }
            TurnMessage::Tool { tool_call_id, content } => {
                (tool_call_id, Said::Result(content::read(content, &in_content)?))
            }
            TurnMessage::ToolPermission { tool_call_id, granted, reason } => {
                let reason = reason.clone().filter(|reason| !reason.trim().is_empty());
                (tool_call_id, Said::Permission { granted: *granted, reason })
            }
        };
        answers.push(Answer { path, call_id: call_id.clone(), said });
    }
    if answers.is_empty() && says_nothing(&said_by_user) {
        return Err(Problem::validation("messages", "the user says nothing"));
    }
    let mut sent = Sent::default();
    if answers.is_empty() {
        sent.new_turn(state, said_by_user);
    } else {
        sent.answers(&pending_calls(state), answers)?;
        if !says_nothing(&said_by_user) {
            let message = UserMessage { place: MessagePlace::JoinsTurn, ..UserMessage::new(said_by_user) };
            sent.events.push(UserEvent::Message(message));
        }
    }
    Ok(sent)
}

/// Adds another message of the user to what was said so far, after a blank line. Whoever reads the text of a message puts
/// its blocks together as they are, so the line is there also where an image stands between two texts.
fn join(said: &mut Vec<Block>, more: Vec<Block>) {
    if says_nothing(&more) {
        return;
    }
    let mut apart = said.iter().any(|block| !block.as_text().is_empty());
    for block in more {
        match (block, said.last_mut()) {
            (Block::Text { text }, last) if apart => {
                apart = false;
                match last {
                    Some(Block::Text { text: before }) => before.push_str(&format!("\n\n{text}")),
                    _ => said.push(Block::text(format!("\n\n{text}"))),
                }
            }
            (block, _) => said.push(block),
        }
    }
}

fn says_nothing(blocks: &[Block]) -> bool {
    !content::has_image(blocks) && blocks.iter().all(|block| block.as_text().trim().is_empty())
}

/// The calls that wait for the application, in the order in which the model made them.
fn pending_calls(state: &State) -> Vec<Pending> {
    let mut calls: Vec<Pending> = Vec::new();
    for action in state.pending() {
        let needs_password = action.kind == ActionKind::Sudo;
        match calls.iter_mut().find(|pending| pending.call.id == action.call.id) {
            Some(pending) => pending.needs_password |= needs_password,
            None => calls.push(Pending { call: action.call.clone(), needs_password }),
        }
    }
    calls
}

/// A call that waits for the application.
struct Pending {
    call: Call,
    /// For a password, which the protocol has no place for.
    needs_password: bool,
}

impl Sent {
    /// A message while calls are pending means that nobody will answer them.
    fn new_turn(&mut self, state: &State, content: Vec<Block>) {
        if state.turn.is_some() {
            let message = Some("A message came in place of answers.".to_owned());
            self.events.push(UserEvent::Interrupt(UserInterrupt { message }));
        }
        self.events.push(UserEvent::Message(UserMessage::new(content)));
    }

    fn answers(&mut self, pending: &[Pending], answers: Vec<Answer>) -> Result<(), Problem> {
        let mut answered: BTreeSet<String> = BTreeSet::new();
        for answer in answers {
            let at = format!("{}.toolCallId", answer.path);
            let Some(waits) = pending.iter().find(|waits| waits.call.id == answer.call_id) else {
                let ids: Vec<&str> = pending.iter().map(|waits| waits.call.id.as_str()).collect();
                let ids = if ids.is_empty() { "nothing".to_owned() } else { ids.join(", ") };
                return Err(Problem::validation(
                    at,
                    format!("{:?} is not pending; {ids} is", answer.call_id),
                ));
            };
            if !answered.insert(answer.call_id.clone()) {
                return Err(Problem::validation(at, format!("{:?} is answered twice", answer.call_id)));
            }
            self.answer(waits, answer)?;
        }
        let missing = pending.iter().map(|waits| waits.call.id.as_str());
        let missing: Vec<&str> = missing.filter(|id| !answered.contains(*id)).collect();
        if !missing.is_empty() {
            let problem =
                format!("must answer all pending calls together; there is none for {}", missing.join(", "));
            return Err(Problem::validation("messages", problem));
        }
        Ok(())
    }

    fn answer(&mut self, waits: &Pending, answer: Answer) -> Result<(), Problem> {
        let call = &waits.call;
        match (call.kind, answer.said) {
            (CallKind::Custom, Said::Permission { granted: true, .. }) => {
                let problem =
                    format!("{} runs in the application; send its result as a tool message", call.tool);
                return Err(Problem::validation(answer.path, problem));
            }
            (kind, Said::Result(content)) => {
                self.told.insert(call.id.clone());
                self.result(kind, call, content);
            }
            (CallKind::Clarify, Said::Permission { granted: true, .. }) => {
                self.clarified(call, String::new());
            }
            (CallKind::Clarify, Said::Permission { granted: false, reason }) => {
                self.clarified(call, denial(reason.as_deref()));
            }
            (CallKind::Secret, Said::Permission { granted: true, .. }) => self.no_value(call),
            (CallKind::Secret, Said::Permission { granted: false, reason }) => {
                let result = failure(call, denial(reason.as_deref()));
                self.events.extend(result.map(UserEvent::ToolResult));
            }
            (CallKind::Custom, Said::Permission { granted: false, reason }) => {
                let result = failure(call, denial(reason.as_deref()));
                self.events.extend(result.map(UserEvent::CustomToolResult));
            }
            (CallKind::Builtin | CallKind::Mcp, Said::Permission { granted, reason }) => {
                self.permission(waits, granted, reason);
            }
        }
        Ok(())
    }

    fn result(&mut self, kind: CallKind, call: &Call, content: Vec<Block>) {
        match kind {
            // An answer in words. One with an image is a result like any other, so that the model sees it.
            CallKind::Clarify if !content::has_image(&content) => {
                self.clarified(call, joined_text(&content));
            }
            CallKind::Secret if joined_text(&content).is_empty() => self.no_value(call),
            CallKind::Secret => {
                self.secrets.insert(call.id.clone(), SecretString::from(joined_text(&content)));
                let request_id = call.id.parse().ok();
                let answered = request_id.map(|request_id| RequestAnswered { request_id });
                self.events.extend(answered.map(UserEvent::SecretResult));
            }
            CallKind::Custom | CallKind::Builtin | CallKind::Mcp | CallKind::Clarify => {
                let result = tool_use_id(call).map(|tool_use_id| CustomToolResult {
                    tool_use_id,
                    content,
                    is_error: false,
                });
                let event = if kind == CallKind::Custom {
                    UserEvent::CustomToolResult
                } else {
                    UserEvent::ToolResult
                };
                self.events.extend(result.map(event));
            }
        }
    }

    fn clarified(&mut self, call: &Call, answer: String) {
        let request_id = call.id.parse().ok();
        let result = request_id.map(|request_id| ClarifyResult { request_id, answer });
        self.events.extend(result.map(UserEvent::ClarifyResult));
    }

    /// Nobody gave the secret that was asked for.
    fn no_value(&mut self, call: &Call) {
        let told = failure(call, "The user supplied no value. Go on without it.".to_owned());
        let told = told.map(|result| CustomToolResult { is_error: false, ..result });
        self.events.extend(told.map(UserEvent::ToolResult));
    }

    fn permission(&mut self, waits: &Pending, granted: bool, reason: Option<String>) {
        if waits.needs_password {
            let why = if granted {
                denial(Some("the command needs a sudo password, which cannot be given over this protocol"))
            } else {
                denial(reason.as_deref())
            };
            self.events.extend(failure(&waits.call, why).map(UserEvent::ToolResult));
            return;
        }
        let confirmation = tool_use_id(&waits.call).map(|tool_use_id| ToolConfirmation {
            tool_use_id,
            result: if granted { Verdict::Allow } else { Verdict::Deny },
            scope: Scope::Once,
            reason,
            tool: None,
            pattern: None,
            also: Vec::new(),
        });
        self.events.extend(confirmation.map(UserEvent::ToolConfirmation));
    }
}

/// The id of a call of the log, which was an id when it was written there.
fn tool_use_id(call: &Call) -> Option<ToolUseId> {
    call.id.parse().ok()
}

fn failure(call: &Call, text: String) -> Option<CustomToolResult> {
    let tool_use_id = tool_use_id(call)?;
    Some(CustomToolResult { tool_use_id, content: vec![Block::text(text)], is_error: true })
}

/// What the model is told about a call that was not permitted.
fn denial(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("Tool call denied: {reason}"),
        None => "Tool call denied".to_owned(),
    }
}
