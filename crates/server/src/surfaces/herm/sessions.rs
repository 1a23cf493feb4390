//! Sessions, without their events.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing;
use jiff::Timestamp;
use petasos_core::event::{Payload, joined_text};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::session::{SessionHeader, SessionRecord, SessionView, Status};
use petasos_core::state::{ActionKind, PendingAction};
use petasos_engine::{Engine, NewSession, SessionChange};
use petasos_store::{EventQuery, Order, SessionFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::payload::StopReason;
use super::usage::Usage;
use super::{milliseconds, seconds};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::{Body, refuse_too_long};
use crate::openapi::{Api, Operation};
use crate::page::Page;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

const MAX_TITLE_CHARS: usize = 500;
const MAX_USER_ID_CHARS: usize = 256;
const MESSAGES_AT_ONCE: usize = 1000;
const PLATFORM: &str = "x-petasos-platform";

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let text = || json!({ "type": "string" });
    Api::default()
        .post(
            "/v1/agents/{agentId}/sessions",
            routing::post(create),
            Operation::new::<Session>("createSession", "Creates a session with an agent.", write)
                .takes::<CreateSession>()
                .header(PLATFORM, "`cli` for a session of a person at the command line; hooks are told so.")
                .creates(),
        )
        .get(
            "/v1/sessions",
            routing::get(list),
            Operation::new::<Page<Session>>("listSessions", "Sessions, newest first.", read)
                .query("agentId", "Only those of this agent.", text())
                .query("userId", "Only those of this user.", text())
                .query(
                    "status",
                    "Only those with this status.",
                    json!({ "enum": ["idle", "running", "archived"] }),
                )
                .query("metadata[key]", "Only those whose metadata has this value for `key`.", text())
                .query("includeArchived", "Archived ones too.", json!({ "type": "boolean" }))
                .pages(100, 20),
        )
        .get(
            "/v1/sessions/{sessionId}",
            routing::get(get),
            Operation::new::<SessionDetail>(
                "getSession",
                "A session with its messages and pending actions.",
                read,
            ),
        )
        .patch(
            "/v1/sessions/{sessionId}",
            routing::patch(change),
            Operation::new::<Session>("changeSession", "Changes the title or metadata.", write)
                .takes::<SessionPatch>(),
        )
        .post(
            "/v1/sessions/{sessionId}/archive",
            routing::post(archive),
            Operation::new::<Session>("archiveSession", "Takes a session off the list.", write),
        )
        .delete(
            "/v1/sessions/{sessionId}",
            routing::delete(delete),
            Operation::new::<Deleted>("deleteSession", "Removes a session and its log for good.", write),
        )
}

/// A session as it is shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Session {
    id: SessionId,
    agent_id: AgentId,
    agent_version: u32,
    user_id: Option<String>,
    title: Option<String>,
    /// A session that waits for an answer is idle.
    status: Status,
    metadata: Map<String, Value>,
    /// That of the last idle event.
    stop_reason: Option<StopReason>,
    usage: Usage,
    created_at: String,
    updated_at: String,
    archived_at: Option<String>,
}

impl Session {
    fn new(header: SessionHeader, view: SessionView) -> Self {
        Session {
            id: header.id,
            agent_id: header.agent_id,
            agent_version: header.agent_version,
            user_id: header.user_id,
            title: view.title,
            status: view.status,
            metadata: view.metadata,
            stop_reason: view.stop_reason.map(StopReason::from),
            usage: Usage::new(&view.usage, view.model_calls),
            created_at: seconds(header.created_at),
            updated_at: seconds(view.updated_at),
            archived_at: view.archived_at.map(seconds),
        }
    }
}

impl From<SessionRecord> for Session {
    fn from(record: SessionRecord) -> Self {
        Session::new(record.header, record.view)
    }
}

/// A session with its messages and what it waits for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionDetail {
    #[serde(flatten)]
    session: Session,
    pending_actions: Vec<Action>,
    messages: Vec<Message>,
}

/// What a paused turn waits for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    id: String,
    r#type: ActionType,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choices: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Value>,
    created_at: String,
    /// When it is no longer waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

/// The kinds of answers that a turn can wait for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ActionType {
    ToolConfirmation,
    CustomTool,
    Clarify,
    Sudo,
    Secret,
}

impl From<ActionKind> for ActionType {
    fn from(kind: ActionKind) -> Self {
        match kind {
            ActionKind::ToolConfirmation => ActionType::ToolConfirmation,
            ActionKind::CustomTool => ActionType::CustomTool,
            ActionKind::Clarify => ActionType::Clarify,
            ActionKind::Sudo => ActionType::Sudo,
            ActionKind::Secret => ActionType::Secret,
        }
    }
}

/// What was said, by whom.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Message {
    role: Role,
    content: String,
    created_at: String,
}

/// Who said something.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Agent,
}

/// What a session is created with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CreateSession {
    /// With the agent's id, the scope of memory.
    user_id: Option<String>,
    title: Option<String>,
    metadata: Option<Map<String, Value>>,
    /// The agent's version; the newest unless given.
    agent_version: Option<u32>,
}

/// What can be changed about a session.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
struct SessionPatch {
    title: Option<String>,
    /// Merged by key; `null` removes one.
    metadata: Option<Map<String, Value>>,
}

/// That a session is gone.
#[derive(Serialize, JsonSchema)]
struct Deleted {
    id: SessionId,
    deleted: bool,
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(agent): Path<String>,
    headers: HeaderMap,
    Body(body): Body<CreateSession>,
) -> Result<(StatusCode, Json<Session>), Problem> {
    check_length("title", body.title.as_deref(), MAX_TITLE_CHARS)?;
    check_length("userId", body.user_id.as_deref(), MAX_USER_ID_CHARS)?;
    let new = NewSession {
        agent_version: body.agent_version,
        user_id: body.user_id,
        title: body.title,
        metadata: body.metadata.unwrap_or_default(),
        platform: platform(&headers).to_owned(),
        ..NewSession::default()
    };
    let record = engine.create_session(&tenant, &id("agent", &agent)?, new).await?;
    Ok((StatusCode::CREATED, Json(record.into())))
}

/// What hooks are told of where a session is held. Our own command line is a client like any other, but for this.
fn platform(headers: &HeaderMap) -> &'static str {
    if headers.get(PLATFORM).is_some_and(|platform| platform == "cli") { "cli" } else { "api" }
}

fn check_length(field: &str, text: Option<&str>, most: usize) -> Result<(), Problem> {
    match text {
        Some("") => Err(Problem::validation(field, "must not be empty; leave it out instead")),
        text => refuse_too_long(field, text.unwrap_or_default(), most),
    }
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Page<Session>>, Problem> {
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
        ..SessionFilter::default()
    };
    let page = engine.sessions(&tenant, filter, query.page()?).await?;
    Ok(Json(Page::of(page, Session::from)))
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<SessionDetail>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let detail = engine.session_detail(&tenant, &session_id).await?;
    let expires_at = detail.state.turn.as_ref().and_then(|turn| turn.expires_at);
    let pending_actions = detail.state.pending().map(|action| show_action(&action, expires_at)).collect();
    let messages = messages(&engine, &tenant, &session_id).await?;
    let session = Session::new(detail.header, detail.state.view);
    Ok(Json(SessionDetail { session, pending_actions, messages }))
}

async fn messages(
    engine: &Engine,
    tenant: &TenantId,
    session_id: &SessionId,
) -> Result<Vec<Message>, Problem> {
    let mut messages = Vec::new();
    let mut after = 0;
    loop {
        let types = vec!["user.message".to_owned(), "agent.message".to_owned()];
        let (order, limit) = (Order::Ascending, MESSAGES_AT_ONCE);
        let query = EventQuery { after: Some(after), before: None, types, order, limit };
        let events = engine.events(tenant, session_id, query).await?;
        for event in &events {
            after = event.sequence;
            let (role, content) = match &event.payload {
                Payload::UserMessage(message) => (Role::User, joined_text(&message.content)),
                Payload::AgentMessage(message) => (Role::Agent, message.text.clone()),
                _ => continue,
            };
            messages.push(Message { role, content, created_at: milliseconds(event.created_at) });
        }
        if events.len() < MESSAGES_AT_ONCE {
            return Ok(messages);
        }
    }
}

fn show_action(action: &PendingAction<'_>, expires_at: Option<Timestamp>) -> Action {
    let call = action.call;
    let field = |name: &str| Some(call.input.get(name).cloned().unwrap_or_default());
    let shown = Action {
        id: action.id.to_owned(),
        r#type: action.kind.into(),
        tool: None,
        input: None,
        question: None,
        choices: None,
        name: None,
        created_at: milliseconds(call.created_at),
        expires_at: expires_at.map(milliseconds),
    };
    match action.kind {
        ActionKind::ToolConfirmation | ActionKind::CustomTool | ActionKind::Sudo => {
            Action { tool: Some(call.tool.clone()), input: Some(call.input.clone()), ..shown }
        }
        ActionKind::Clarify => Action { question: field("question"), choices: field("choices"), ..shown },
        ActionKind::Secret => Action { name: field("name"), question: field("prompt"), ..shown },
    }
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<Map<String, Value>>,
) -> Result<Json<Session>, Problem> {
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
    Ok(Json(engine.change_session(&tenant, &session_id, change).await?.into()))
}

async fn archive(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Session>, Problem> {
    Ok(Json(engine.archive_session(&tenant, &id("session", &session)?).await?.into()))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Deleted>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    engine.delete_session(&tenant, &session_id).await?;
    Ok(Json(Deleted { id: session_id, deleted: true }))
}
