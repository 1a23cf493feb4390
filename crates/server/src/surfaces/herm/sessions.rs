//! Sessions, without their events.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing;
use petasos_core::event::{Payload, joined_text};
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::key::KeyScope;
use petasos_core::model_settings::{ModelSettings, ModelSettingsChange};
use petasos_core::session::{SessionHeader, SessionRecord, SessionView, Status};
use petasos_core::settings::SessionSettings;
use petasos_engine::{Engine, LogPart, LogRange, NewSession, SessionChange};
use petasos_store::SessionFilter;
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
use crate::rows::{self, Rows};
use crate::surfaces::pending_actions::{ActionFields, TimedAction, pending_actions};
use crate::valid_keys::Until;

const MAX_TITLE_CHARS: usize = 500;
const MAX_USER_ID_CHARS: usize = 256;
const PLATFORM: &str = "x-petasos-platform";

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let text = || json!({ "type": "string" });
    Api::default()
        .post(
            "/v1/agents/{agentId}/sessions",
            routing::post(create),
            Operation::new::<OwnModel>("createSession", "Creates a session with an agent.", write)
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
            Operation::new::<OwnModel>(
                "changeSession",
                "Changes the title, the metadata, the model or its settings.",
                write,
            )
            .takes::<SessionPatch>(),
        )
        .post(
            "/v1/sessions/{sessionId}/archive",
            routing::post(archive),
            Operation::new::<Session>("archiveSession", "Takes a session off the list.", write),
        )
        .post(
            "/v1/sessions/{sessionId}/finalize",
            routing::post(finalize),
            Operation::new::<Session>(
                "finalizeSession",
                "Tells hooks that the person has left the session, which stays as it is.",
                write,
            ),
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

/// A session and what it sets for its model.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OwnModel {
    #[serde(flatten)]
    session: Session,
    /// The model in place of the agent's; null if the session has none of its own.
    model: Option<String>,
    /// The settings that lie over the agent's; null if there are none.
    model_settings: Option<ModelSettings>,
}

impl OwnModel {
    fn new(session: Session, settings: Option<SessionSettings>) -> Self {
        let SessionSettings { model, model_settings, .. } = settings.unwrap_or_default();
        OwnModel { session, model, model_settings: Some(*model_settings).filter(|own| !own.is_empty()) }
    }
}

/// A session with its messages and what it waits for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionDetail {
    #[serde(flatten)]
    session: OwnModel,
    pending_actions: Vec<Action>,
    messages: Vec<Message>,
}

/// What a paused turn waits for.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Action {
    #[serde(flatten)]
    fields: ActionFields,
    created_at: String,
    /// When it is no longer waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl From<TimedAction> for Action {
    fn from(action: TimedAction) -> Self {
        Action {
            fields: action.fields,
            created_at: milliseconds(action.created_at),
            expires_at: action.expires_at.map(milliseconds),
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
    /// A model in place of the agent's, as `provider/model`.
    model: Option<String>,
    /// Settings that lie over the agent's, key by key.
    #[schemars(with = "Option<ModelSettings>")]
    model_settings: Option<Map<String, Value>>,
}

/// What can be changed about a session.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a body that is read field by field")]
struct SessionPatch {
    title: Option<String>,
    /// Merged by key; `null` removes one.
    metadata: Option<Map<String, Value>>,
    /// A model in place of the agent's, as `provider/model`; `null` takes it back. Only while the session is idle.
    model: Option<String>,
    /// Settings that lie over the agent's, merged by key; `null` takes one back, or all. Only while the session is idle.
    model_settings: Option<ModelSettings>,
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
) -> Result<(StatusCode, Json<OwnModel>), Problem> {
    check_length("title", body.title.as_deref(), MAX_TITLE_CHARS)?;
    check_length("userId", body.user_id.as_deref(), MAX_USER_ID_CHARS)?;
    let settings = body.model_settings.map(ModelSettingsChange::Merge);
    let settings = SessionSettings::default().with_model(body.model.map(Some), settings);
    let settings = settings.map_err(|invalid| Problem::validation(invalid.name, invalid.problem))?;
    let settings = Some(settings).filter(|settings| *settings != SessionSettings::default());
    let new = NewSession {
        settings: settings.clone(),
        agent_version: body.agent_version,
        user_id: body.user_id,
        title: body.title,
        metadata: body.metadata.unwrap_or_default(),
        platform: platform(&headers).to_owned(),
        ..NewSession::default()
    };
    let record = engine.create_session(&tenant, &id("agent", &agent)?, new).await?;
    Ok((StatusCode::CREATED, Json(OwnModel::new(record.into(), settings))))
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
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let detail = engine.session_detail(&tenant, &session_id).await?;
    let pending_actions = pending_actions(&detail).map(Action::from).collect();
    let types = vec!["user.message".to_owned(), "agent.message".to_owned()];
    let log = engine.log_part(&tenant, &session_id, LogRange { types, ..LogRange::default() }).await?;
    let session = OwnModel::new(Session::new(detail.header, detail.state.view), detail.state.settings);
    let head = rows::head(&SessionDetail { session, pending_actions, messages: Vec::new() }, "]}")?;
    rows::respond(head, Messages(log), until).await
}

/// What was said, as it is read from the log.
struct Messages(LogPart);

impl Rows for Messages {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        while let Some(event) = self.0.next().await? {
            let created_at = milliseconds(event.created_at);
            let (role, content) = match event.payload {
                Payload::UserMessage(message) => (Role::User, joined_text(&message.content)),
                Payload::AgentMessage(message) => (Role::Agent, message.text),
                _ => continue,
            };
            return rows::json(&Message { role, content, created_at }).map(Some);
        }
        Ok(None)
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok("]}".into())
    }
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<Map<String, Value>>,
) -> Result<Json<OwnModel>, Problem> {
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
            ("model", Value::Null) => change.model = Some(None),
            ("model", Value::String(model)) => change.model = Some(Some(model)),
            ("model", _) => return Err(Problem::validation("model", "must be a string or null")),
            ("modelSettings", Value::Null) => change.model_settings = Some(ModelSettingsChange::TakeBack),
            ("modelSettings", Value::Object(patch)) => {
                change.model_settings = Some(ModelSettingsChange::Merge(patch));
            }
            ("modelSettings", _) => {
                return Err(Problem::validation("modelSettings", "must be an object or null"));
            }
            ("metadata", _) => return Err(Problem::validation("metadata", "must be an object")),
            (other, _) => {
                let problem = "cannot be changed; title, metadata, model and modelSettings can";
                return Err(Problem::validation(other, problem));
            }
        }
    }
    let record = engine.change_session(&tenant, &session_id, change).await?;
    let settings = engine.session_detail(&tenant, &session_id).await?.state.settings;
    Ok(Json(OwnModel::new(record.into(), settings)))
}

async fn archive(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Session>, Problem> {
    Ok(Json(engine.archive_session(&tenant, &id("session", &session)?).await?.into()))
}

async fn finalize(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<Json<Session>, Problem> {
    Ok(Json(engine.finalize_session(&tenant, &id("session", &session)?).await?.into()))
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
