//! Sending events to a session.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing;
use petasos_core::event::{
    Block, ClarifyResult, CustomToolResult, RequestAnswered, Scope, ToolConfirmation, UserInterrupt,
    UserMessage, UserSteer, Verdict,
};
use petasos_core::ids::{RequestId, SessionId};
use petasos_core::key::KeyScope;
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, Submission};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Map, Value};

use super::envelope::Envelope;
use super::payload::MAX_BLOCK_CHARS;
use crate::auth::WritesSessions;
use crate::body::{Raw, parse_any};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;

const MAX_BLOCKS: usize = 100;
const MAX_EVENTS: usize = 100;
const MAX_ANSWER_CHARS: usize = 20_000;

const TYPES: &str = "user.message, user.steer, user.interrupt, user.tool_confirmation, user.custom_tool_result, \
                     user.clarify_result, user.sudo_result, user.secret_result";

pub(super) fn api() -> Api {
    let summary = "Sends events to a session: all are taken, or none.";
    let operation =
        Operation::new::<Accepted<'_>>("sendEvents", summary, KeyScope::SessionsWrite).takes::<SendEvents>();
    Api::default().post("/v1/sessions/{sessionId}/events", routing::post(send), operation)
}

/// The events that were taken.
#[derive(Serialize, JsonSchema)]
struct Accepted<'a> {
    data: Vec<Envelope<'a>>,
}

/// A list of events under `events`, a bare list, or one event.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
enum SendEvents {
    Wrapped { events: Vec<SentEvent> },
    List(Vec<SentEvent>),
    One(SentEvent),
}

/// An event that can be sent.
#[derive(JsonSchema)]
#[schemars(tag = "type")]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
enum SentEvent {
    #[schemars(rename = "user.message")]
    Message { content: Vec<SentBlock> },
    #[schemars(rename = "user.steer")]
    Steer { message: String },
    #[schemars(rename = "user.interrupt")]
    Interrupt { message: Option<String> },
    #[schemars(rename = "user.tool_confirmation")]
    ToolConfirmation {
        tool_use_id: String,
        result: Verdict,
        scope: Option<Scope>,
        pattern: Option<String>,
        reason: Option<String>,
    },
    #[schemars(rename = "user.custom_tool_result")]
    CustomToolResult { tool_use_id: String, content: Vec<SentBlock>, is_error: Option<bool> },
    #[schemars(rename = "user.clarify_result")]
    ClarifyResult { request_id: String, answer: String },
    #[schemars(rename = "user.sudo_result")]
    SudoResult { request_id: String, password: String },
    #[schemars(rename = "user.secret_result")]
    SecretResult { request_id: String, value: String },
}

/// A piece of text.
#[derive(JsonSchema)]
#[schemars(tag = "type", rename_all = "snake_case")]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
enum SentBlock {
    Text {
        #[schemars(length(max = 20_000))]
        text: String,
    },
}

async fn send(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Raw(body): Raw,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let body: Value = parse_any(&body)?;
    let submission = match read(body) {
        Ok(submission) => submission,
        Err(problem) => {
            // A session that is not there is the first thing to say about it.
            engine.session(&tenant, &session_id).await?;
            return Err(problem);
        }
    };
    let events = engine.submit(&tenant, &session_id, submission).await?;
    let data = events.iter().filter_map(Envelope::of).collect();
    Ok(Json(Accepted { data }).into_response())
}

/// Reads a request: `{"events": […]}`, a list, or one event.
pub(crate) fn read(body: Value) -> Result<Submission, Problem> {
    let events = match body {
        Value::Array(events) => events,
        Value::Object(mut body) => match body.remove("events") {
            Some(Value::Array(events)) => events,
            Some(_) => return Err(Problem::validation("events", "must be a list of events")),
            None => vec![Value::Object(body)],
        },
        _ => {
            return Err(Problem::validation(
                "body",
                "must be an event, a list of events, or {\"events\": […]}",
            ));
        }
    };
    if events.is_empty() || events.len() > MAX_EVENTS {
        return Err(Problem::validation("events", format!("must hold 1 to {MAX_EVENTS} events")));
    }
    let mut answers = BTreeMap::new();
    let events: Vec<UserEvent> = events
        .into_iter()
        .enumerate()
        .map(|(index, event)| Fields::new(event, format!("events[{index}]"))?.event(&mut answers))
        .collect::<Result<_, _>>()?;
    let messages = events.iter().filter(|event| matches!(event, UserEvent::Message(_))).count();
    if messages > 1 {
        return Err(Problem::validation("events", "only one user.message is allowed per request"));
    }
    Ok(Submission { events, answers, ..Submission::default() })
}

/// The fields of one event, with the path that errors name.
struct Fields {
    fields: Map<String, Value>,
    path: String,
}

impl Fields {
    fn new(value: Value, path: String) -> Result<Self, Problem> {
        match value {
            Value::Object(fields) => Ok(Fields { fields, path }),
            _ => Err(Problem::validation(path, "must be an object")),
        }
    }

    /// Reads an event. A password or secret has no place in it: those go to `answers`, by request.
    fn event(mut self, answers: &mut BTreeMap<String, SecretString>) -> Result<UserEvent, Problem> {
        let kind = self.text("type", usize::MAX)?;
        Ok(match kind.as_str() {
            "user.message" => {
                let content = self.content()?;
                if content.iter().all(|block| block.as_text().trim().is_empty()) {
                    return Err(self.problem("content", "says nothing"));
                }
                UserEvent::Message(UserMessage::new(content))
            }
            "user.steer" => {
                let message = self.text("message", MAX_ANSWER_CHARS)?;
                if message.trim().is_empty() {
                    return Err(self.problem("message", "says nothing"));
                }
                UserEvent::Steer(UserSteer { message })
            }
            "user.interrupt" => {
                UserEvent::Interrupt(UserInterrupt { message: self.optional_text("message")? })
            }
            "user.tool_confirmation" => UserEvent::ToolConfirmation(ToolConfirmation {
                tool_use_id: self.id("tool_use_id")?,
                result: match self.text("result", usize::MAX)?.as_str() {
                    "allow" => Verdict::Allow,
                    "deny" => Verdict::Deny,
                    _ => return Err(self.problem("result", "must be allow or deny")),
                },
                scope: match self.optional_text("scope")?.as_deref() {
                    None | Some("once") => Scope::Once,
                    Some("session") => Scope::Session,
                    Some("always") => Scope::Always,
                    Some(_) => return Err(self.problem("scope", "must be once, session or always")),
                },
                reason: self.optional_text("reason")?,
                pattern: self.optional_text("pattern")?,
                tool: None,
                also: Vec::new(),
            }),
            "user.custom_tool_result" => UserEvent::CustomToolResult(CustomToolResult {
                tool_use_id: self.id("tool_use_id")?,
                content: self.content()?,
                is_error: match self.fields.get("is_error") {
                    None | Some(Value::Null) => false,
                    Some(Value::Bool(is_error)) => *is_error,
                    Some(_) => return Err(self.problem("is_error", "must be true or false")),
                },
            }),
            "user.clarify_result" => UserEvent::ClarifyResult(ClarifyResult {
                request_id: self.id("request_id")?,
                answer: self.text("answer", MAX_ANSWER_CHARS)?,
            }),
            "user.sudo_result" => UserEvent::SudoResult(self.answered("password", answers)?),
            "user.secret_result" => UserEvent::SecretResult(self.answered("value", answers)?),
            _ => {
                return Err(self.problem("type", &format!("is not one that can be sent; those are: {TYPES}")));
            }
        })
    }

    fn answered(
        &mut self,
        field: &str,
        answers: &mut BTreeMap<String, SecretString>,
    ) -> Result<RequestAnswered, Problem> {
        let value = SecretString::from(self.text(field, MAX_ANSWER_CHARS)?);
        let request_id: RequestId = self.id("request_id")?;
        answers.insert(request_id.to_string(), value);
        Ok(RequestAnswered { request_id })
    }

    fn problem(&self, field: &str, problem: &str) -> Problem {
        Problem::validation(format!("{}.{field}", self.path), problem)
    }

    fn text(&mut self, field: &str, most: usize) -> Result<String, Problem> {
        match self.fields.remove(field) {
            Some(Value::String(text)) if text.chars().count() <= most => Ok(text),
            Some(Value::String(_)) => Err(self.problem(field, &format!("has more than {most} characters"))),
            Some(_) => Err(self.problem(field, "must be a text")),
            None => Err(self.problem(field, "is missing")),
        }
    }

    fn optional_text(&mut self, field: &str) -> Result<Option<String>, Problem> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.text(field, MAX_ANSWER_CHARS).map(Some),
        }
    }

    fn id<T: std::str::FromStr>(&mut self, field: &str) -> Result<T, Problem> {
        let text = self.text(field, usize::MAX)?;
        text.parse().map_err(|_| self.problem(field, "is not an id"))
    }

    fn content(&mut self) -> Result<Vec<Block>, Problem> {
        let blocks = match self.fields.remove("content") {
            Some(Value::Array(blocks)) => blocks,
            Some(_) => return Err(self.problem("content", "must be a list of text blocks")),
            None => return Err(self.problem("content", "is missing")),
        };
        if blocks.is_empty() || blocks.len() > MAX_BLOCKS {
            return Err(self.problem("content", &format!("must hold 1 to {MAX_BLOCKS} blocks")));
        }
        let read = |(index, block)| {
            let mut block = Fields::new(block, format!("{}.content[{index}]", self.path))?;
            match block.text("type", usize::MAX)?.as_str() {
                "text" => Ok(Block::text(block.text("text", MAX_BLOCK_CHARS)?)),
                _ => Err(block.problem("type", "must be text")),
            }
        };
        blocks.into_iter().enumerate().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "user\\.(message|steer|interrupt|sudo_result)|text|.{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 6, |inner| {
            let key = "type|events|content|text|message|request_id|password|[a-z]{1,4}";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..4).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in json_value()) {
            // It must come back at all; what it says is checked from outside.
            drop(read(value));
        }
    }
}
