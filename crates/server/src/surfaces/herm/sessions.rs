//! Sessions, without their events.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use petasos_core::event::{Payload, joined_text};
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::model::Usage;
use petasos_core::session::{SessionHeader, SessionRecord, SessionView, Status};
use petasos_core::state::{ActionKind, PendingAction};
use petasos_engine::{Engine, NewSession, SessionChange};
use petasos_store::{EventQuery, Order, SessionFilter};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::payload::StopReason;
use super::{id, milliseconds, seconds};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::problem::Problem;
use crate::query::Query;

const MAX_TITLE_CHARS: usize = 500;
const MAX_USER_ID_CHARS: usize = 256;

/// A session as it is shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session<'a> {
    id: &'a SessionId,
    agent_id: &'a AgentId,
    agent_version: u32,
    user_id: Option<&'a str>,
    title: Option<&'a str>,
    status: Status,
    metadata: &'a Map<String, Value>,
    stop_reason: Option<StopReason<'a>>,
    usage: Value,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

fn show<'a>(header: &'a SessionHeader, view: &'a SessionView) -> Session<'a> {
    Session {
        id: &header.id,
        agent_id: &header.agent_id,
        agent_version: header.agent_version,
        user_id: header.user_id.as_deref(),
        title: view.title.as_deref(),
        status: view.status,
        metadata: &view.metadata,
        stop_reason: view.stop_reason.as_ref().map(StopReason::from),
        usage: show_usage(&view.usage, view.model_calls),
        created_at: seconds(header.created_at),
        updated_at: seconds(view.updated_at),
        archived_at: view.archived_at.map(seconds),
    }
}

fn show_record(record: &SessionRecord) -> Json<Value> {
    Json(json!(show(&record.header, &record.view)))
}

fn show_usage(usage: &Usage, model_calls: u64) -> Value {
    json!({
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedInputTokens": usage.cached_input_tokens,
        "modelCalls": model_calls,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateSession {
    user_id: Option<String>,
    title: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    agent_version: Option<u32>,
}

pub(super) async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(agent): Path<String>,
    Body(body): Body<CreateSession>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    check_length("title", body.title.as_deref(), MAX_TITLE_CHARS)?;
    check_length("userId", body.user_id.as_deref(), MAX_USER_ID_CHARS)?;
    let new = NewSession {
        agent_version: body.agent_version,
        user_id: body.user_id,
        title: body.title,
        metadata: body.metadata.unwrap_or_default(),
        platform: "api".to_owned(),
    };
    let record = engine.create_session(&tenant, &id("agent", &agent)?, new).await?;
    Ok((StatusCode::CREATED, show_record(&record)))
}

fn check_length(field: &str, text: Option<&str>, most: usize) -> Result<(), Problem> {
    match text.map(|text| text.chars().count()) {
        Some(0) => Err(Problem::validation(field, "must not be empty; leave it out instead")),
        Some(count) if count > most => {
            Err(Problem::validation(field, format!("has {count} characters; at most {most} are allowed")))
        }
        _ => Ok(()),
    }
}

pub(super) async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Value>, Problem> {
    let (status, only_archived) = match query.text("status") {
        None => (None, false),
        Some("idle") => (Some(Status::Idle), false),
        Some("running") => (Some(Status::Running), false),
        Some("archived") => (None, true),
        Some(other) => {
            return Err(Problem::validation("status", format!("{other:?} is not idle, running or archived")));
        }
    };
    let filter = SessionFilter {
        agent_id: query.parsed("agentId", "the id of an agent")?,
        user_id: query.text("userId").map(str::to_owned),
        status,
        metadata: query.keyed("metadata").map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        include_archived: query.parsed("includeArchived", "true or false")?.unwrap_or(false),
        only_archived,
    };
    let page = engine.sessions(&tenant, filter, query.page()?).await?;
    let data: Vec<_> = page.items.iter().map(|record| show(&record.header, &record.view)).collect();
    Ok(Json(json!({ "data": data, "nextCursor": page.next.map(|cursor| cursor.0) })))
}

pub(super) async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<Value>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let detail = engine.session_detail(&tenant, &session_id).await?;
    let mut shown = json!(show(&detail.header, &detail.state.view));
    shown["pendingActions"] = detail.state.pending().map(|action| show_action(&action)).collect();
    let mut messages = Vec::new();
    let mut after = 0;
    loop {
        let types = vec!["user.message".to_owned(), "agent.message".to_owned()];
        let query =
            EventQuery { after: Some(after), before: None, types, order: Order::Ascending, limit: 1000 };
        let events = engine.events(&tenant, &session_id, query).await?;
        let Some(last) = events.last() else { break };
        after = last.sequence;
        for event in &events {
            let (role, content) = match &event.payload {
                Payload::UserMessage(message) => ("user", joined_text(&message.content)),
                Payload::AgentMessage(message) => ("agent", message.text.clone()),
                _ => continue,
            };
            let created_at = milliseconds(event.created_at);
            messages.push(json!({ "role": role, "content": content, "createdAt": created_at }));
        }
        if events.len() < 1000 {
            break;
        }
    }
    shown["messages"] = messages.into();
    Ok(Json(shown))
}

fn show_action(action: &PendingAction<'_>) -> Value {
    let input = &action.call.input;
    let mut shown = json!({ "id": action.id, "createdAt": milliseconds(action.call.created_at) });
    match action.kind {
        ActionKind::ToolConfirmation => {
            shown["type"] = "tool_confirmation".into();
            shown["tool"] = action.call.tool.as_str().into();
            shown["input"] = input.clone().into();
        }
        ActionKind::CustomTool => {
            shown["type"] = "custom_tool".into();
            shown["tool"] = action.call.tool.as_str().into();
            shown["input"] = input.clone().into();
        }
        ActionKind::Clarify => {
            shown["type"] = "clarify".into();
            shown["question"] = input.get("question").cloned().unwrap_or_default();
            shown["choices"] = input.get("choices").cloned().unwrap_or_default();
        }
        ActionKind::Sudo => {
            shown["type"] = "sudo".into();
            shown["tool"] = action.call.tool.as_str().into();
            shown["input"] = input.clone().into();
        }
        ActionKind::Secret => {
            shown["type"] = "secret".into();
            shown["name"] = input.get("name").cloned().unwrap_or_default();
            shown["question"] = input.get("prompt").cloned().unwrap_or_default();
        }
    }
    shown
}

pub(super) async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let mut change = SessionChange::default();
    for (name, value) in body {
        match (name.as_str(), value) {
            ("title", Value::Null) => change.title = Some(None),
            ("title", Value::String(title)) => {
                check_length("title", Some(&title), MAX_TITLE_CHARS)?;
                change.title = Some(Some(title));
            }
            ("title", _) => return Err(Problem::validation("title", "must be a text or null")),
            ("metadata", Value::Object(metadata)) => change.metadata = Some(metadata),
            ("metadata", _) => return Err(Problem::validation("metadata", "must be an object")),
            (other, _) => {
                return Err(Problem::validation(other, "cannot be changed; title and metadata can"));
            }
        }
    }
    Ok(show_record(&engine.change_session(&tenant, &session_id, change).await?))
}

pub(super) async fn archive(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(show_record(&engine.archive_session(&tenant, &id("session", &session)?).await?))
}

pub(super) async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Value>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    engine.delete_session(&tenant, &session_id).await?;
    Ok(Json(json!({ "id": session_id, "deleted": true })))
}
