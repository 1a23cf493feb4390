//! Sessions as conversations: opened for a customer, listed, handed over to a person, deleted.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use futures_util::TryStreamExt;
use petasos_core::conversation::Mode;
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, SessionDetail};
use petasos_store::Page;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::errors::CodedError;
use super::patch::Patch;
use super::requests::{ChangeOf, Listing, OldestFirst, Open, filter};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::surfaces::pending_actions::{ActionFields, TimedAction, pending_actions};

/// The agent of sessions that name none.
pub(crate) const DEFAULT_AGENT: &str = "interactiveAgent";

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
            Operation::new::<Listing<Conversation>>("listConversations", "Sessions, newest first.", read)
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
pub(super) struct Conversation {
    id: SessionId,
    agent_id: AgentId,
    customer_id: Option<String>,
    title: Option<String>,
    mode: Mode,
    created_at: String,
    metadata: Map<String, Value>,
    /// What the turn waits for; empty unless the status is `processing` with the stage `waiting`.
    pending_actions: Vec<ConversationAction>,
}

/// An action that a conversation waits for.
#[derive(Serialize, JsonSchema)]
struct ConversationAction {
    #[serde(flatten)]
    fields: ActionFields,
    created_at: String,
    /// When it is no longer waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
}

impl From<TimedAction> for ConversationAction {
    fn from(action: TimedAction) -> Self {
        let shown = |at| format!("{at:.3}");
        ConversationAction {
            fields: action.fields,
            created_at: shown(action.created_at),
            expires_at: action.expires_at.map(shown),
        }
    }
}

impl From<SessionDetail> for Conversation {
    fn from(detail: SessionDetail) -> Self {
        let pending_actions = pending_actions(&detail).map(ConversationAction::from).collect();
        Conversation {
            id: detail.header.id,
            agent_id: detail.header.agent_id,
            customer_id: detail.header.user_id,
            title: detail.state.view.title,
            mode: detail.state.conversation.mode,
            created_at: format!("{:.3}", detail.header.created_at),
            metadata: detail.state.view.metadata,
            pending_actions,
        }
    }
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
    let open = Open {
        agent_id: body.agent_id.as_deref().unwrap_or(DEFAULT_AGENT),
        customer_id: body.customer_id,
        title: body.title,
        metadata: body.metadata,
        labels: BTreeSet::new(),
    };
    Ok((StatusCode::CREATED, Json(open.carry_out(&engine, &tenant).await?.into())))
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
) -> Result<Json<Listing<Conversation>>, Problem> {
    let filter = filter(&query, OldestFirst(false))?;
    let total_count = engine.count_sessions(&tenant, filter.clone()).await?;
    let page = engine.sessions(&tenant, filter, query.page()?).await?;
    let items = engine.session_details(&tenant, page.items).map_ok(Conversation::from);
    let items: Vec<Conversation> = items.try_collect().await?;
    Ok(Json(Listing::of(Page { items, next: page.next }, total_count)))
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<Conversation>, Problem> {
    Ok(Json(engine.session_detail(&tenant, &id("session", &session)?).await?.into()))
}

async fn change(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<ChangeConversation>,
) -> Result<Json<Conversation>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let ChangeConversation { title, mode, metadata } = body;
    let change = ChangeOf { title, mode, metadata, ..ChangeOf::default() };
    Ok(Json(change.carry_out(&engine, &tenant, &session_id).await?.into()))
}

pub(crate) async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_session(&tenant, &id("session", &session)?).await?;
    Ok(StatusCode::NO_CONTENT)
}
