//! Answering what a conversation waits for: a confirmation, a question, an application's tool, a secret.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::routing;
use petasos_core::event::{
    Block, ClarifyResult, CustomToolResult, RequestAnswered, Scope, ToolConfirmation, Verdict,
};
use petasos_core::ids::SessionId;
use petasos_core::key::KeyScope;
use petasos_core::state::ActionKind;
use petasos_core::step::{Refusal, UserEvent};
use petasos_engine::{Engine, Error, Submission};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;

use super::errors::CodedError;
use super::sessions::Conversation;
use crate::auth::WritesSessions;
use crate::body::{Body, refuse_too_long};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;

const MAX_ANSWER_CHARS: usize = 20_000;
const MAX_BLOCKS: usize = 100;

pub(super) fn api() -> Api {
    let summary = "Answers an action that a conversation waits for.";
    let operation =
        Operation::new::<Conversation>("answerConversationAction", summary, KeyScope::SessionsWrite)
            .takes::<AnswerShapes>()
            .fails_with::<CodedError>();
    Api::default().post(
        "/conversation/sessions/{sessionId}/actions/{actionId}",
        routing::post(answer),
        operation,
    )
}

/// An answer. Which fields it has depends on the type of the action.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "AnswerConversationAction")]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
enum AnswerShapes {
    /// For `tool_confirmation`.
    Confirmation {
        result: Verdict,
        scope: Option<Scope>,
        /// One of the action's `patterns`.
        pattern: Option<String>,
    },
    /// For `clarify`.
    Answer { answer: String },
    /// For `custom_tool`.
    Result {
        /// A string, or a list of text blocks.
        content: ResultShape,
        is_error: Option<bool>,
    },
    /// For `secret` and `sudo`. The value is not stored.
    Value { value: String },
}

/// All fields that an answer can have.
#[derive(Deserialize)]
struct ActionAnswer {
    result: Option<Verdict>,
    scope: Option<Scope>,
    pattern: Option<String>,
    answer: Option<String>,
    content: Option<Value>,
    is_error: Option<bool>,
    value: Option<String>,
}

async fn answer(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path((session, action)): Path<(String, String)>,
    Body(body): Body<ActionAnswer>,
) -> Result<Json<Conversation>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let state = engine.session_detail(&tenant, &session_id).await?.state;
    let Some(kind) = state.pending().find(|pending| pending.id == action).map(|pending| pending.kind) else {
        let pending = state.pending().map(|pending| pending.id.to_owned()).collect();
        return Err(Error::Refused(Refusal::NotPending { id: action, pending }).into());
    };
    let submission = body.submission(&action, kind)?;
    engine.submit(&tenant, &session_id, submission).await?;
    Ok(Json(engine.session_detail(&tenant, &session_id).await?.into()))
}

impl ActionAnswer {
    /// What the session is sent. The answer must have the fields of its kind and no others.
    fn submission(self, action: &str, kind: ActionKind) -> Result<Submission, Problem> {
        self.refuse_fields_of_other_kinds(kind)?;
        let mut answers = BTreeMap::new();
        let event = match kind {
            ActionKind::ToolConfirmation => UserEvent::ToolConfirmation(ToolConfirmation {
                tool_use_id: id("action", action)?,
                result: self.result.ok_or_else(|| missing("result", kind))?,
                scope: self.scope.unwrap_or_default(),
                reason: None,
                pattern: self.pattern,
                tool: None,
                also: Vec::new(),
            }),
            ActionKind::Clarify => UserEvent::ClarifyResult(ClarifyResult {
                request_id: id("action", action)?,
                answer: text("answer", self.answer, kind)?,
            }),
            ActionKind::CustomTool => UserEvent::CustomToolResult(CustomToolResult {
                tool_use_id: id("action", action)?,
                content: content(self.content.ok_or_else(|| missing("content", kind))?)?,
                is_error: self.is_error.unwrap_or(false),
            }),
            ActionKind::Secret | ActionKind::Sudo => {
                let value = SecretString::from(text("value", self.value, kind)?);
                answers.insert(action.to_owned(), value);
                let answered = RequestAnswered { request_id: id("action", action)? };
                match kind {
                    ActionKind::Sudo => UserEvent::SudoResult(answered),
                    _ => UserEvent::SecretResult(answered),
                }
            }
        };
        Ok(Submission { events: vec![event], answers, ..Submission::default() })
    }

    fn refuse_fields_of_other_kinds(&self, kind: ActionKind) -> Result<(), Problem> {
        let given = [
            ("result", self.result.is_some()),
            ("scope", self.scope.is_some()),
            ("pattern", self.pattern.is_some()),
            ("answer", self.answer.is_some()),
            ("content", self.content.is_some()),
            ("is_error", self.is_error.is_some()),
            ("value", self.value.is_some()),
        ];
        let own = fields_of(kind);
        match given.into_iter().find(|(field, is_given)| *is_given && !own.contains(field)) {
            None => Ok(()),
            Some((field, _)) => {
                let problem = format!("does not answer this action; it takes {}", own.join(", "));
                Err(Problem::validation(field, problem))
            }
        }
    }
}

/// The fields that answer an action, the required one first.
fn fields_of(kind: ActionKind) -> &'static [&'static str] {
    match kind {
        ActionKind::ToolConfirmation => &["result", "scope", "pattern"],
        ActionKind::Clarify => &["answer"],
        ActionKind::CustomTool => &["content", "is_error"],
        ActionKind::Secret | ActionKind::Sudo => &["value"],
    }
}

fn missing(field: &str, kind: ActionKind) -> Problem {
    Problem::validation(field, format!("is missing; this action takes {}", fields_of(kind).join(", ")))
}

fn text(field: &str, value: Option<String>, kind: ActionKind) -> Result<String, Problem> {
    let value = value.ok_or_else(|| missing(field, kind))?;
    refuse_too_long(field, &value, MAX_ANSWER_CHARS)?;
    Ok(value)
}

/// The result of an application's tool: a string, or a list of text blocks.
fn content(value: Value) -> Result<Vec<Block>, Problem> {
    let blocks = match value {
        Value::String(text) => {
            refuse_too_long("content", &text, MAX_ANSWER_CHARS)?;
            return Ok(vec![Block::text(text)]);
        }
        Value::Array(blocks) if (1..=MAX_BLOCKS).contains(&blocks.len()) => blocks,
        _ => {
            let problem = format!("must be a string or a list of 1 to {MAX_BLOCKS} text blocks");
            return Err(Problem::validation("content", problem));
        }
    };
    let read = |(index, block): (usize, Value)| {
        let Ok(TextBlock::Text { text }) = serde_json::from_value(block) else {
            let problem = r#"must be {"type": "text", "text": "…"}"#;
            return Err(Problem::validation(format!("content[{index}]"), problem));
        };
        refuse_too_long(&format!("content[{index}].text"), &text, MAX_ANSWER_CHARS)?;
        Ok(Block::text(text))
    };
    blocks.into_iter().enumerate().map(read).collect()
}

/// How a result may be written.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "it describes a field that is read by hand, for better errors")]
enum ResultShape {
    Text(String),
    Blocks(Vec<TextBlock>),
}

/// A block of a result.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(inline)]
enum TextBlock {
    Text { text: String },
}
