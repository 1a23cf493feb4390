//! Requests that both dialects take: their wire shapes differ, what is checked and done does not.

use std::collections::BTreeSet;

use petasos_core::conversation::{ConversationChange, LabelChange, Mode};
use petasos_core::event::{Block, Payload, PersonMessage, UserMessage};
use petasos_core::ids::{AgentId, SessionId, TenantId};
use petasos_core::session::CONVERSATION_PLATFORM;
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, Error, NewSession, SessionChange, SessionDetail};
use petasos_store::{Page, SessionFilter};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::patch::Patch;
use crate::body::refuse_too_long;
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

const MAX_TITLE_CHARS: usize = 500;
const MAX_MESSAGE_CHARS: usize = 100_000;
pub(crate) const MAX_AUTHOR_CHARS: usize = 256;

/// A page of a listing.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}Page")]
pub(crate) struct Listing<T> {
    pub(crate) items: Vec<T>,
    /// How many there are on all pages.
    pub(crate) total_count: u64,
    pub(crate) has_more: bool,
    /// Where to go on; null at the end.
    pub(crate) next_cursor: Option<String>,
}

impl<T> Listing<T> {
    pub(crate) fn of<S: Into<T>>(page: Page<S>, total_count: u64) -> Self {
        let next_cursor = page.next.map(|cursor| cursor.0);
        let items = page.items.into_iter().map(Into::into).collect();
        Listing { items, total_count, has_more: next_cursor.is_some(), next_cursor }
    }
}

/// A session to open.
pub(crate) struct Open<'a> {
    pub(crate) agent_id: &'a str,
    pub(crate) customer_id: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) metadata: Option<Map<String, Value>>,
    pub(crate) labels: BTreeSet<String>,
}

impl Open<'_> {
    /// Opens it. A customer that nobody knows is registered.
    pub(crate) async fn carry_out(
        self,
        engine: &Engine,
        tenant: &TenantId,
    ) -> Result<SessionDetail, Problem> {
        check_title(self.title.as_deref(), MAX_TITLE_CHARS)?;
        let agent_id: AgentId = id("agent", self.agent_id)?;
        // An agent that is not there must not leave a customer behind.
        engine.agent(tenant, &agent_id, None).await?;
        if let Some(customer) = &self.customer_id {
            engine.register_customer(tenant, customer).await.map_err(of_customer_id)?;
        }
        let labels = Some(self.labels).filter(|labels| !labels.is_empty());
        let change = labels.map(|labels| {
            let labels = Some(labels);
            Payload::ConversationChanged(ConversationChange { labels, ..ConversationChange::default() })
        });
        let new = NewSession {
            user_id: self.customer_id,
            title: self.title,
            metadata: self.metadata.unwrap_or_default(),
            platform: CONVERSATION_PLATFORM.to_owned(),
            seed: change.into_iter().collect(),
            ..NewSession::default()
        };
        let record = engine.create_session(tenant, &agent_id, new).await?;
        Ok(engine.session_detail(tenant, &record.header.id).await?)
    }
}

/// What is wrong with the id of a customer is called by the field that it came in.
fn of_customer_id(error: Error) -> Problem {
    match error {
        Error::Invalid { problem, .. } => Problem::validation("customer_id", problem),
        error => error.into(),
    }
}

/// A change of a session, all or nothing.
#[derive(Default)]
pub(crate) struct ChangeOf {
    pub(crate) title: Option<String>,
    pub(crate) metadata: Option<Patch>,
    pub(crate) mode: Option<Mode>,
    /// How far the application has read.
    pub(crate) client_offset: Option<u64>,
    pub(crate) labels: Option<LabelChange>,
}

impl ChangeOf {
    /// Carries it out.
    pub(crate) async fn carry_out(
        self,
        engine: &Engine,
        tenant: &TenantId,
        session_id: &SessionId,
    ) -> Result<SessionDetail, Problem> {
        check_title(self.title.as_deref(), MAX_TITLE_CHARS)?;
        let ChangeOf { title, metadata, mode, client_offset, labels } = self;
        let conversation = Some(ConversationChange { mode, client_offset, labels: None })
            .filter(|change| *change != ConversationChange::default());
        let (title, metadata) = (title.map(Some), metadata.map(Patch::into_merge));
        let change = SessionChange { title, metadata, conversation, labels, ..SessionChange::default() };
        if change != SessionChange::default() {
            engine.change_session(tenant, session_id, change).await?;
        }
        Ok(engine.session_detail(tenant, session_id).await?)
    }
}

/// Refuses a title of too many characters.
pub(crate) fn check_title(title: Option<&str>, most: usize) -> Result<(), Problem> {
    refuse_too_long("title", title.unwrap_or_default(), most)
}

/// Which sessions are listed, and in which order.
pub(crate) fn filter(query: &Query, oldest_first: OldestFirst) -> Result<SessionFilter, Problem> {
    Ok(SessionFilter {
        agent_id: query.parsed("agent_id", "the id of an agent")?,
        user_id: query.text("customer_id").map(str::to_owned),
        oldest_first: oldest_first.unless(query)?,
        ..SessionFilter::default()
    })
}

/// Whether a listing begins with the oldest, unless `sort` says otherwise.
#[derive(Clone, Copy)]
pub(crate) struct OldestFirst(pub(crate) bool);

impl OldestFirst {
    /// What `sort` says, or this.
    pub(crate) fn unless(self, query: &Query) -> Result<bool, Problem> {
        match query.text("sort") {
            None => Ok(self.0),
            Some("asc") => Ok(true),
            Some("desc") => Ok(false),
            Some(other) => Err(Problem::validation("sort", format!("{other:?} is not asc or desc"))),
        }
    }
}

/// What a user says: it opens a turn, and ends the one under way.
pub(crate) fn user_message(
    field: &str,
    text: String,
    metadata: Map<String, Value>,
) -> Result<UserEvent, Problem> {
    let content = vec![Block::text(message_text(field, text)?)];
    Ok(UserEvent::Supersede(UserMessage { metadata, ..UserMessage::new(content) }))
}

/// What a person says to the user beside the agent, or in its name.
pub(crate) fn person_message(
    author: Option<Author<'_>>,
    field: &str,
    text: String,
    metadata: Map<String, Value>,
) -> Result<UserEvent, Problem> {
    let text = message_text(field, text)?;
    let (author, author_id) = match author {
        None => (None, None),
        Some(author) => (Some(author_name(author.field, author.name)?), author.id),
    };
    Ok(UserEvent::PersonMessage(PersonMessage { text, author, author_id, metadata }))
}

/// Who says something.
pub(crate) struct Author<'a> {
    /// Where the request has the name.
    pub(crate) field: &'a str,
    pub(crate) name: String,
    pub(crate) id: Option<String>,
}

/// The text of a message.
pub(crate) fn message_text(field: &str, text: String) -> Result<String, Problem> {
    said(field, text, MAX_MESSAGE_CHARS)
}

/// The name of somebody who says something.
pub(crate) fn author_name(field: &str, name: String) -> Result<String, Problem> {
    said(field, name, MAX_AUTHOR_CHARS)
}

/// A text that says something, and not too much.
fn said(field: &str, text: String, most: usize) -> Result<String, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::validation(field, "says nothing"));
    }
    refuse_too_long(field, &text, most)?;
    Ok(text)
}

/// The kinds of a comma list; none for all.
pub(crate) fn kinds(list: Option<&str>, known: &[&'static str]) -> Result<Vec<&'static str>, Problem> {
    let names = list.into_iter().filter(|list| !list.is_empty()).flat_map(|list| list.split(','));
    let read = |name: &str| {
        let found = known.iter().find(|kind| **kind == name.trim()).copied();
        let problem = || format!("{name:?} is not a kind; there are: {}", known.join(", "));
        found.ok_or_else(|| Problem::validation("kinds", problem()))
    };
    names.map(read).collect()
}
