//! Sessions as conversations: opened for a customer, listed, handed over to a person, deleted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::conversation::{ConversationChange, Mode};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, NewSession, SessionChange, SessionDetail};
use petasos_store::SessionFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::errors::CodedError;
use super::patch::Patch;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

/// The agent of sessions that name none.
const DEFAULT_AGENT: &str = "interactiveAgent";
/// What hooks and listings call this surface.
pub(crate) const PLATFORM: &str = "conversation";
const MAX_TITLE_CHARS: usize = 500;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    let text = || json!({ "type": "string" });
    Api::default()
        .post(
            "/conversation/sessions",
            routing::post(create),
            Operation::new::<Conversation>("openConversation", "Opens a session for a customer.", write)
                .takes::<OpenConversation>()
                .creates()
                .fails_with::<CodedError>(),
        )
        .get(
            "/conversation/sessions",
            routing::get(list),
            Operation::new::<Conversations>("listConversations", "Sessions, newest first.", read)
                .query("agent_id", "Only those of this agent.", text())
                .query("customer_id", "Only those of this customer.", text())
                .query(
                    "sort",
                    "Oldest or newest first.",
                    json!({ "enum": ["asc", "desc"], "default": "desc" }),
                )
                .pages(100, 20)
                .fails_with::<CodedError>(),
        )
        .get(
            "/conversation/sessions/{sessionId}",
            routing::get(get),
            Operation::new::<Conversation>("getConversation", "A session.", read).fails_with::<CodedError>(),
        )
        .patch(
            "/conversation/sessions/{sessionId}",
            routing::patch(change),
            Operation::new::<Conversation>(
                "changeConversation",
                "Changes the title, the metadata, or who answers.",
                write,
            )
            .takes::<ChangeConversation>()
            .fails_with::<CodedError>(),
        )
        .delete(
            "/conversation/sessions/{sessionId}",
            routing::delete(delete),
            Operation::new::<()>("deleteConversation", "Removes a session and its log for good.", write)
                .empty()
                .fails_with::<CodedError>(),
        )
}

/// A session as a conversation.
#[derive(Serialize, JsonSchema)]
struct Conversation {
    id: SessionId,
    agent_id: AgentId,
    customer_id: Option<String>,
    title: Option<String>,
    mode: Mode,
    created_at: String,
    metadata: Map<String, Value>,
}

impl From<SessionDetail> for Conversation {
    fn from(detail: SessionDetail) -> Self {
        Conversation {
            id: detail.header.id,
            agent_id: detail.header.agent_id,
            customer_id: detail.header.user_id,
            title: detail.state.view.title,
            mode: detail.state.conversation.mode,
            created_at: format!("{:.3}", detail.header.created_at),
            metadata: detail.state.view.metadata,
        }
    }
}

/// A page of sessions.
#[derive(Serialize, JsonSchema)]
struct Conversations {
    items: Vec<Conversation>,
    /// How many there are on all pages.
    total_count: u64,
    has_more: bool,
    /// Where to go on; null at the end.
    next_cursor: Option<String>,
}

/// What a session is opened with.
#[derive(Deserialize, JsonSchema)]
struct OpenConversation {
    /// `interactiveAgent` unless given.
    agent_id: Option<String>,
    /// Registered if nobody is known by it.
    customer_id: Option<String>,
    title: Option<String>,
    metadata: Option<Map<String, Value>>,
}

/// What can be changed about a session.
#[derive(Deserialize, JsonSchema)]
struct ChangeConversation {
    title: Option<String>,
    mode: Option<Mode>,
    metadata: Option<Patch>,
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<OpenConversation>,
) -> Result<(StatusCode, Json<Conversation>), Problem> {
    check_title(body.title.as_deref())?;
    let agent_id: AgentId = id("agent", body.agent_id.as_deref().unwrap_or(DEFAULT_AGENT))?;
    // An agent that is not there must not leave a customer behind.
    engine.agent(&tenant, &agent_id, None).await?;
    if let Some(customer) = &body.customer_id {
        engine.register_customer(&tenant, customer).await?;
    }
    let new = NewSession {
        user_id: body.customer_id,
        title: body.title,
        metadata: body.metadata.unwrap_or_default(),
        platform: PLATFORM.to_owned(),
        ..NewSession::default()
    };
    let record = engine.create_session(&tenant, &agent_id, new).await?;
    Ok((StatusCode::CREATED, Json(shown(&engine, &tenant, &record.header.id).await?)))
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Conversations>, Problem> {
    let filter = SessionFilter {
        agent_id: query.parsed("agent_id", "the id of an agent")?,
        user_id: query.text("customer_id").map(str::to_owned),
        oldest_first: oldest_first(&query)?.unwrap_or(false),
        ..SessionFilter::default()
    };
    let total_count = engine.count_sessions(&tenant, filter.clone()).await?;
    let page = engine.sessions(&tenant, filter, query.page()?).await?;
    let items = engine.session_details(&tenant, &page.items).await?.into_iter().map(Conversation::from);
    let next_cursor = page.next.map(|cursor| cursor.0);
    Ok(Json(Conversations {
        items: items.collect(),
        total_count,
        has_more: next_cursor.is_some(),
        next_cursor,
    }))
}

/// What `sort` says, if anything.
pub(crate) fn oldest_first(query: &Query) -> Result<Option<bool>, Problem> {
    match query.text("sort") {
        None => Ok(None),
        Some("asc") => Ok(Some(true)),
        Some("desc") => Ok(Some(false)),
        Some(other) => Err(Problem::validation("sort", format!("{other:?} is not asc or desc"))),
    }
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<Conversation>, Problem> {
    Ok(Json(shown(&engine, &tenant, &id("session", &session)?).await?))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<ChangeConversation>,
) -> Result<Json<Conversation>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    check_title(body.title.as_deref())?;
    let change =
        SessionChange { title: body.title.map(Some), metadata: body.metadata.map(Patch::into_merge) };
    if change != SessionChange::default() {
        engine.change_session(&tenant, &session_id, change).await?;
    }
    if let Some(mode) = body.mode {
        let change = UserEvent::Conversation(ConversationChange::mode(mode));
        engine.send(&tenant, &session_id, vec![change]).await?;
    }
    Ok(Json(shown(&engine, &tenant, &session_id).await?))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_session(&tenant, &id("session", &session)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn shown(engine: &Engine, tenant: &TenantId, id: &SessionId) -> Result<Conversation, Problem> {
    Ok(engine.session_detail(tenant, id).await?.into())
}

pub(crate) fn check_title(title: Option<&str>) -> Result<(), Problem> {
    match title.map(|title| title.chars().count()) {
        Some(count) if count > MAX_TITLE_CHARS => Err(Problem::validation(
            "title",
            format!("has {count} characters; at most {MAX_TITLE_CHARS} are allowed"),
        )),
        _ => Ok(()),
    }
}
