//! The events of a conversation: posted, and read.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing;
use petasos_core::event::Event;
use petasos_core::ids::SessionId;
use petasos_core::key::KeyScope;
use petasos_engine::Engine;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::errors::CodedError;
use super::follow::{self, Filter, Fold, Reading};
use super::requests::{Author, kinds, person_message, user_message};
use super::types::{ConversationEvent, KINDS};
use super::view::ConversationView;
use crate::auth::{ReadsSessions, WritesSessions};
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::server::App;
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let post = Operation::new::<ConversationEvent>(
        "postConversationEvent",
        "Posts a message of the user, or of a person who answers beside the agent.",
        KeyScope::SessionsWrite,
    );
    let read = Operation::new::<Vec<ConversationEvent>>(
        "readConversation",
        "The events of a conversation; waits for the next one if there is none.",
        KeyScope::SessionsRead,
    );
    let number = |default: u64| json!({ "type": "integer", "minimum": 0, "default": default });
    Api::default()
        .post(
            "/conversation/sessions/{sessionId}/events",
            routing::post(create),
            post.takes::<PostEvent>().creates().fails_with::<CodedError>(),
        )
        .get(
            "/conversation/sessions/{sessionId}/events",
            routing::get(list),
            read.query("min_offset", "The first offset that is wanted.", number(0))
                .query("kinds", "A comma list of kinds.", json!({ "type": "string" }))
                .query("wait_for_data", "How many seconds to wait if there is nothing.", number(60))
                .query("sse", "A stream of events.", json!({ "type": "boolean", "default": false }))
                .header("Last-Event-ID", "With `sse`: the last offset that the reader has.")
                .may_stream()
                .fails_with::<CodedError>(),
        )
}

/// A message to post.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum PostEvent {
    /// The user says something, which opens a turn and ends the one under way.
    UserMessage { text: String },
    /// A person says something beside the agent or in its place, which opens no turn.
    HumanAgentMessage { text: String, author: String },
}

impl Fold for ConversationView {
    type Shown = ConversationEvent;

    fn push(&mut self, event: &Event) -> Option<ConversationEvent> {
        ConversationView::push(self, event)
    }
}

async fn create(
    State(engine): State<Engine>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<PostEvent>,
) -> Result<(StatusCode, Json<ConversationEvent>), Problem> {
    let session_id: SessionId = id("session", &session)?;
    let event = match body {
        PostEvent::UserMessage { text } => user_message("text", text, Map::new())?,
        PostEvent::HumanAgentMessage { text, author } => {
            let author = Author { field: "author", name: author, id: None };
            person_message(Some(author), "text", text, Map::new())?
        }
    };
    let taken = engine.send(&tenant, &session_id, vec![event]).await?;
    let shown = taken.iter().find_map(|event| ConversationView::default().push(event));
    let shown = shown.ok_or_else(|| Problem::internal("a message that was taken is not shown"))?;
    Ok((StatusCode::CREATED, Json(shown)))
}

async fn list(
    State(app): State<App>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
    query: Query,
    headers: HeaderMap,
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let reading = Reading::read(&query, &headers)?;
    let kinds = kinds(query.text("kinds"), &KINDS)?;
    let filter: Filter<ConversationEvent> =
        Box::new(move |event| kinds.is_empty() || kinds.contains(&event.kind()));
    // Whoever waits, waits with as little as possible.
    drop((query, headers));
    follow::respond(&app, &tenant, &session_id, ConversationView::default(), reading, filter, until).await
}
