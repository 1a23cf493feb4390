//! `GET /aap/sessions/{id}/history`: what was said, all of it or what the model still reads.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::response::Response;
use axum::routing;
use petasos_core::State;
use petasos_core::event::Block;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::model::{AssistantPart, Message, ToolOutcome};
use petasos_engine::{ContextPart, Engine, LogPart, LogRange};
use serde_json::json;

use super::story::{Fact, Messages, Narrator};
use super::types::{ErrorBody, GetHistory, History};
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;
use crate::rows::{self, Rows};
use crate::valid_keys::Until;

pub(super) fn api() -> Api {
    let summary = "What was said: all of it, or what the model still reads.";
    let operation = Operation::new::<GetHistory>("aapHistory", summary, KeyScope::SessionsRead)
        .required_query("type", "Which history.", json!({ "enum": ["compacted", "full"] }))
        .fails_with::<ErrorBody>();
    Api::default().get("/aap/sessions/{sessionId}/history", routing::get(history), operation)
}

async fn history(
    Shared(engine): Shared<Engine>,
    ReadsSessions(tenant): ReadsSessions,
    Path(session): Path<String>,
    query: Query,
    until: Until,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    match query.text("type") {
        Some("full") => {
            let log = engine.log_part(&tenant, &session_id, LogRange::default()).await?;
            let head = rows::head(&GetHistory { history: History::Full(Vec::new()) }, TAIL)?;
            let (narrator, messages) = (Some(Narrator::default()), Messages::default());
            rows::respond(head, FullHistory { log, narrator, messages }, until).await
        }
        Some("compacted") => {
            let context = engine.context_part(&tenant, &session_id).await?;
            let head = rows::head(&GetHistory { history: History::Compacted(Vec::new()) }, TAIL)?;
            let history = CompactedHistory {
                engine,
                tenant,
                session_id,
                context,
                messages: Messages::default(),
                is_told: false,
            };
            rows::respond(head, history, until).await
        }
        _ => Err(Problem::validation("type", "must be compacted or full")),
    }
}

/// What follows the messages of a history.
const TAIL: &str = "]}}";

/// Everything that was said, as it is read from the log.
struct FullHistory {
    log: LogPart,
    /// None when the log is told to its end.
    narrator: Option<Narrator>,
    messages: Messages,
}

impl Rows for FullHistory {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            let complete = match &self.narrator {
                Some(_) => self.messages.take_complete(),
                None => self.messages.take_first(),
            };
            if let Some(message) = complete {
                return rows::json(&message).map(Some);
            }
            let Some(mut narrator) = self.narrator.take() else { return Ok(None) };
            match self.log.next().await? {
                Some(event) => {
                    narrator.tell(&event).into_iter().for_each(|fact| self.messages.add(fact));
                    self.narrator = Some(narrator);
                }
                None => narrator.end().for_each(|fact| self.messages.add(fact)),
            }
        }
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok(TAIL.into())
    }
}

/// What the model reads, without the agent's instructions, and with what the application is asked besides.
struct CompactedHistory {
    engine: Engine,
    tenant: TenantId,
    session_id: SessionId,
    context: ContextPart,
    messages: Messages,
    is_told: bool,
}

impl CompactedHistory {
    /// Adds what comes next; false at the end.
    async fn tell(&mut self) -> Result<bool, Problem> {
        if self.is_told {
            return Ok(false);
        }
        if let Some(text) = self.context.next_system_message().await? {
            self.messages.add(Fact::System(text));
        } else if let Some(message) = self.context.next().await? {
            facts(message).into_iter().for_each(|fact| self.messages.add(fact));
        } else {
            // A turn that waits for some results may have others.
            let open = self.context.open_results().into_iter().map(result);
            open.for_each(|fact| self.messages.add(fact));
            // Last, so that a question that is shown as open was not answered in the meantime.
            let state = self.engine.session_detail(&self.tenant, &self.session_id).await?.state;
            own_questions(&state).for_each(|fact| self.messages.add(fact));
            self.is_told = true;
        }
        Ok(true)
    }
}

impl Rows for CompactedHistory {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            let complete =
                if self.is_told { self.messages.take_first() } else { self.messages.take_complete() };
            match complete {
                Some(message) => return rows::json(&message).map(Some),
                None if self.tell().await? => {}
                None => return Ok(None),
            }
        }
    }

    fn tail(&mut self) -> Result<Vec<u8>, Problem> {
        Ok(TAIL.into())
    }
}

/// Whether to go on over a budget is a question of ours, and waits for an answer like any other call.
fn own_questions(state: &State) -> impl Iterator<Item = Fact> {
    state.pending().filter(|action| action.call.budget.is_some()).map(|action| Fact::Call {
        id: action.call.id.clone(),
        name: action.call.tool.clone(),
        input: action.call.input.clone(),
    })
}

fn facts(message: Message) -> Vec<Fact> {
    match message {
        Message::User(content) => vec![Fact::User(content)],
        Message::ToolResults(outcomes) => outcomes.into_iter().map(result).collect(),
        Message::Assistant(parts) => {
            let said = parts.into_iter().map(|part| match part {
                AssistantPart::Thinking { text, .. } => Fact::Thinking(text),
                AssistantPart::Text(text) => Fact::Text(text),
                AssistantPart::ToolCall { id, name, input, .. } => Fact::Call { id, name, input },
            });
            let is_empty =
                |fact: &Fact| matches!(fact, Fact::Thinking(text) | Fact::Text(text) if text.is_empty());
            std::iter::once(Fact::NewMessage).chain(said.filter(|fact| !is_empty(fact))).collect()
        }
    }
}

fn result(outcome: ToolOutcome) -> Fact {
    let images = outcome.images.into_iter().map(|url| Block::Image { url });
    let text = Some(Block::text(outcome.text)).filter(|text| !text.as_text().is_empty());
    Fact::Result { id: outcome.id, content: text.into_iter().chain(images).collect() }
}
