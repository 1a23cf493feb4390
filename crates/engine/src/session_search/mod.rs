//! `session_search`: what was said in earlier sessions of the same agent with the same user.
//!
//! It finds messages by words, reads around one, and lists sessions; nothing of another scope can be reached by it.

mod snippet;

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::{Event, Payload, ToolEffect, joined_text};
use petasos_core::ids::SessionId;
use petasos_core::memory::UserScope;
use petasos_core::model::ToolSpec;
use petasos_core::session::SessionRecord;
use petasos_store::{
    EventQuery, LOG_BATCH_BYTES, MessageHit, MessageOrder, MessageQuery, MessageRole, Order, PageRequest,
    SessionFilter, Store,
};
use petasos_tools::{Audience, Invocation, Tool, ToolOutput};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::snippet::{beginning, snippet};
use crate::load;

const MAX_SESSIONS: usize = 10;
const MAX_WINDOW: usize = 20;
/// Messages that are looked at to find so many sessions.
const HITS: usize = 100;
/// Messages that are shown of one session.
const HITS_OF_SESSION: usize = 3;
const SNIPPET_CHARS: usize = 300;
const MESSAGE_CHARS: usize = 2000;

/// Searches earlier sessions.
pub(crate) struct SessionSearch(pub(crate) Arc<dyn Store>);

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    query: String,
    limit: Option<usize>,
    #[serde(default)]
    sort: Sort,
    session_id: Option<String>,
    around_message_id: Option<u64>,
    window: Option<usize>,
    role_filter: Option<Role>,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Sort {
    #[default]
    Relevance,
    Newest,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    #[serde(alias = "assistant")]
    Agent,
}

impl Tool for SessionSearch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "session_search".to_owned(),
            description:
                "Search earlier sessions with this user: with query, find messages; with session_id, read \
                          that session around a message; with neither, list the latest sessions."
                    .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words, \"phrases\", beginnings*, OR" },
                    "limit": { "type": "integer", "description": "Sessions, 3 unless given" },
                    "sort": { "enum": ["relevance", "newest"] },
                    "role_filter": { "enum": ["user", "agent"] },
                    "session_id": { "type": "string" },
                    "around_message_id": { "type": "integer" },
                    "window": { "type": "integer", "description": "Messages on each side, 5 unless given" },
                },
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn is_of_use(&self, to: Audience) -> bool {
        to.has_user
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("query").or(input.get("session_id"))?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let store = Arc::clone(&self.0);
        async move { run(store.as_ref(), invocation).await.map_or_else(ToolOutput::error, ToolOutput::ok) }
            .boxed()
    }
}

async fn run(store: &dyn Store, invocation: Invocation) -> Result<String, String> {
    let Invocation { tenant, agent_id, user_id, session_id, input, .. } = invocation;
    let user_id = user_id.ok_or("This session has no user, and so no earlier sessions.")?;
    let scope = UserScope { tenant, agent_id, user_id };
    let arguments: Arguments = serde_json::from_value(Value::Object(input))
        .map_err(|error| format!("The arguments are wrong: {error}."))?;
    let shown = if let Some(id) = &arguments.session_id {
        read_around(store, &scope, id, &arguments).await?
    } else if arguments.query.trim().is_empty() {
        latest(store, &scope, &session_id, &arguments).await?
    } else {
        find(store, &scope, &session_id, &arguments).await?
    };
    Ok(shown.to_string())
}

impl Arguments {
    fn sessions(&self) -> usize {
        self.limit.unwrap_or(3).clamp(1, MAX_SESSIONS)
    }
}

/// Messages with these words, by session.
async fn find(
    store: &dyn Store,
    scope: &UserScope,
    this: &SessionId,
    arguments: &Arguments,
) -> Result<Value, String> {
    let mut query = MessageQuery {
        words: arguments.query.clone(),
        role: arguments.role_filter.map(|role| match role {
            Role::User => MessageRole::User,
            Role::Agent => MessageRole::Agent,
        }),
        except: Some(this.clone()),
        order: match arguments.sort {
            Sort::Relevance => MessageOrder::Best,
            Sort::Newest => MessageOrder::Newest,
        },
        limit: HITS,
    };
    let mut hits = store.search_messages(scope, query.clone()).await.map_err(unreadable)?;
    if hits.is_empty() {
        // No message has all words; one with some of them may still be the one.
        query.words = query.words.split_whitespace().collect::<Vec<_>>().join(" OR ");
        hits = store.search_messages(scope, query).await.map_err(unreadable)?;
    }
    let mut sessions: Vec<(SessionId, Vec<MessageHit>)> = Vec::new();
    for hit in hits {
        let has_room = sessions.len() < arguments.sessions();
        match sessions.iter_mut().find(|(id, _)| *id == hit.session_id) {
            Some((_, hits)) if hits.len() < HITS_OF_SESSION => hits.push(hit),
            None if has_room => sessions.push((hit.session_id.clone(), vec![hit])),
            _ => {}
        }
    }
    let shown: Vec<Value> = sessions.iter().map(|(id, hits)| show_hits(id, hits, &arguments.query)).collect();
    Ok(json!({ "sessions": shown, "hint": "Read on with session_id and around_message_id." }))
}

fn show_hits(id: &SessionId, hits: &[MessageHit], words: &str) -> Value {
    let messages = hits.iter().map(|hit| {
        json!({
            "message_id": hit.sequence,
            "role": hit.role.as_str(),
            "at": format!("{:.0}", hit.created_at),
            "snippet": snippet(&hit.text, words, SNIPPET_CHARS),
        })
    });
    let title = hits.first().and_then(|hit| hit.title.as_deref());
    json!({ "session_id": id.as_str(), "title": title, "messages": messages.collect::<Vec<_>>() })
}

/// The latest sessions.
async fn latest(
    store: &dyn Store,
    scope: &UserScope,
    this: &SessionId,
    arguments: &Arguments,
) -> Result<Value, String> {
    let filter = SessionFilter {
        agent_id: Some(scope.agent_id.clone()),
        user_id: Some(scope.user_id.clone()),
        include_archived: true,
        ..SessionFilter::default()
    };
    let limit = arguments.sessions() + 1;
    let page = store.sessions(&scope.tenant, filter, PageRequest { after: None, limit }).await;
    let earlier = page.map_err(unreadable)?.items.into_iter().filter(|session| session.header.id != *this);
    let shown = earlier.take(arguments.sessions()).map(|SessionRecord { header, view }| {
        json!({
            "session_id": header.id.as_str(),
            "title": view.title,
            "created_at": format!("{:.0}", header.created_at),
            "updated_at": format!("{:.0}", view.updated_at),
        })
    });
    Ok(json!({ "sessions": shown.collect::<Vec<_>>() }))
}

/// Messages around one, or the first of the session.
async fn read_around(
    store: &dyn Store,
    scope: &UserScope,
    id: &str,
    arguments: &Arguments,
) -> Result<Value, String> {
    let missing = || format!("There is no earlier session {id} with this user.");
    let session_id: SessionId = id.parse().map_err(|_| missing())?;
    let session = store.session(&scope.tenant, &session_id).await.map_err(unreadable)?;
    let session = session.filter(|session| UserScope::of(&session.header).as_ref() == Some(scope));
    let session = session.ok_or_else(missing)?;
    let window = arguments.window.unwrap_or(5).clamp(1, MAX_WINDOW);
    let around = arguments.around_message_id.unwrap_or(0);
    let read = async |after, before, order, limit| {
        let types = vec!["user.message".to_owned(), "agent.message".to_owned()];
        let query = EventQuery { after, before, types, order, limit, max_bytes: LOG_BATCH_BYTES };
        store.events(&session_id, query).await.map(|batch| batch.events).map_err(unreadable)
    };
    let mut events = read(None, Some(around), Order::Descending, window).await?;
    events.reverse();
    // The message itself, and those after it.
    events.extend(read(around.checked_sub(1), None, Order::Ascending, window + 1).await?);
    let amendments = load::amendments(store, &session_id).await.map_err(unreadable)?;
    events.retain(|event| !amendments.hide(event.sequence));
    let messages: Vec<Value> = events.iter().filter_map(show_message).collect();
    Ok(json!({ "session_id": id, "title": session.view.title, "messages": messages }))
}

fn show_message(event: &Event) -> Option<Value> {
    let (role, text) = match &event.payload {
        Payload::UserMessage(message) => (MessageRole::User, joined_text(&message.content)),
        Payload::AgentMessage(message) => (MessageRole::Agent, message.text.clone()),
        _ => return None,
    };
    Some(json!({
        "message_id": event.sequence,
        "role": role.as_str(),
        "at": format!("{:.0}", event.created_at),
        "text": beginning(&text, MESSAGE_CHARS),
    }))
}

fn unreadable(error: petasos_store::Error) -> String {
    tracing::error!(%error, "earlier sessions could not be searched");
    "The earlier sessions could not be searched; try again later.".to_owned()
}
