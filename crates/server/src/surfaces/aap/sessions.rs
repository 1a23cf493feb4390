//! Sessions: created, listed, read, deleted.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::key::KeyScope;
use petasos_core::settings::SessionSettings;
use petasos_engine::{Engine, Error, NewSession, ServerTools, SessionDetail};
use petasos_store::{Cursor, PageRequest, SessionFilter};
use serde_json::json;

use super::seed;
use super::settings::{Choices, Wishes, show_agent, show_client_tool, show_custom_tool};
use super::turns::no_images;
use super::types::{ErrorBody, GetSessions, PostSessions, SessionCreated, SessionInfo};
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Rows};
use crate::valid_keys::Until;

/// Sessions of a page.
const PAGE: usize = 100;
/// How many of them are looked at at the same time.
const AT_ONCE: usize = 16;

pub(super) fn api() -> Api {
    let (read, write) = (KeyScope::SessionsRead, KeyScope::SessionsWrite);
    Api::default()
        .post(
            "/aap/sessions",
            routing::post(create),
            Operation::new::<SessionCreated>(
                "aapCreateSession",
                "Creates a session. Nothing runs yet.",
                write,
            )
            .takes::<PostSessions>()
            .creates()
            .fails_with::<ErrorBody>(),
        )
        .get(
            "/aap/sessions",
            routing::get(list),
            Operation::new::<GetSessions>("aapListSessions", "Sessions, newest first, 100 at a time.", read)
                .query("after", "`next` of the page before.", json!({ "type": "string" }))
                .fails_with::<ErrorBody>(),
        )
        .get(
            "/aap/sessions/{sessionId}",
            routing::get(get),
            Operation::new::<SessionInfo>("aapGetSession", "A session.", read).fails_with::<ErrorBody>(),
        )
        .delete(
            "/aap/sessions/{sessionId}",
            routing::delete(delete),
            Operation::new::<()>("aapDeleteSession", "Removes a session and its history for good.", write)
                .empty()
                .fails_with::<ErrorBody>(),
        )
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Body(body): Body<PostSessions>,
) -> Result<(StatusCode, Json<SessionCreated>), Problem> {
    let name = &body.agent.name;
    let unknown = || Problem::validation("agent.name", format!("there is no agent {name:?}"));
    let agent_id: AgentId = name.parse().map_err(|_| unknown())?;
    let agent = engine.agent(&tenant, &agent_id, None).await.map_err(|error| match error {
        Error::NotFound { .. } => unknown(),
        error => error.into(),
    })?;
    let log = seed::read(&body.messages)?;
    if seed::has_image(&log) && !engine.takes_images(&agent.definition.model) {
        return Err(no_images("messages", &agent.definition.model));
    }
    let tools = engine.server_tools(&tenant, &agent.definition, None).await;
    let wishes = Wishes {
        server_tools: Some(body.agent.tools),
        options: body.agent.options,
        client_tools: Some(body.tools),
    };
    let choices = Choices { agent: &agent.definition, tools: &tools };
    let chosen = choices.choose(SessionSettings::default(), wishes)?;
    let new = NewSession {
        agent_version: Some(agent.version),
        platform: "aap".to_owned(),
        settings: Some(chosen.settings),
        seed: log,
        secrets: chosen.secrets,
        ..NewSession::default()
    };
    let record = engine.create_session(&tenant, &agent_id, new).await?;
    Ok((StatusCode::CREATED, Json(SessionCreated { session_id: record.header.id.to_string() })))
}

async fn list(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    query: Query,
    until: Until,
) -> Result<Response, Problem> {
    let after = query.text("after").map(|after| Cursor(after.to_owned()));
    let page = engine.sessions(&tenant, SessionFilter::default(), PageRequest { after, limit: PAGE }).await;
    let page = page.map_err(|error| match error {
        Error::Invalid { problem, .. } => Problem::validation("after", problem),
        error => error.into(),
    })?;
    let details = engine.session_details(&tenant, page.items);
    let infos = details.map(move |detail| {
        let engine = engine.clone();
        async move { rows::json(&info(&engine, &detail?).await) }
    });
    let head = rows::head(&GetSessions { sessions: Vec::new(), next: None }, "]}")?;
    let tail = rows::json(&GetSessions { sessions: Vec::new(), next: page.next.map(|cursor| cursor.0) })?;
    let tail = tail.strip_prefix(&head[..]).unwrap_or(b"]}").to_vec();
    rows::respond(head, SessionRows { infos: infos.buffered(AT_ONCE).boxed(), tail }, until).await
}

/// The sessions of a page. The tools of each may be large.
struct SessionRows {
    infos: BoxStream<'static, Result<Vec<u8>, Problem>>,
    tail: Vec<u8>,
}

impl Rows for SessionRows {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        self.infos.next().await.transpose()
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok(std::mem::take(&mut self.tail))
    }
}

async fn get(
    State(engine): State<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
) -> Result<Json<SessionInfo>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let detail = engine.session_detail(&tenant, &session_id).await?;
    Ok(Json(info(&engine, &detail).await))
}

async fn delete(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
) -> Result<StatusCode, Problem> {
    engine.delete_session(&tenant, &id("session", &session)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn info(engine: &Engine, detail: &SessionDetail) -> SessionInfo {
    let settings = detail.state.settings.clone().unwrap_or_default();
    let agent = &*detail.agent;
    let (tools, of_agent) = match settings.server_tools {
        None => {
            let header = &detail.header;
            let tools = engine.server_tools(&header.tenant, agent, header.user_id.as_deref()).await;
            let of_agent = agent.custom_tools().filter(|(name, ..)| !settings.is_client_tool(name));
            (tools, of_agent.map(show_custom_tool).collect())
        }
        // It says for itself which it has.
        Some(_) => (ServerTools::default(), Vec::new()),
    };
    let of_session = settings.client_tools.iter().map(show_client_tool);
    SessionInfo {
        session_id: detail.header.id.to_string(),
        agent: show_agent(detail.header.agent_id.as_str(), agent, &tools, &settings),
        tools: of_session.chain(of_agent).collect(),
    }
}
