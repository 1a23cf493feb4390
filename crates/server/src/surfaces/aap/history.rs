//! `GET /aap/sessions/{id}/history`: what was said, all of it or what the model still reads.

use axum::Json;
use axum::extract::Path;
use axum::extract::State as Shared;
use axum::routing;
use petasos_core::State;
use petasos_core::context::Context;
use petasos_core::event::Block;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::model::{AssistantPart, Message, ToolOutcome};
use petasos_engine::Engine;
use petasos_store::{EventQuery, Order};
use serde_json::json;

use super::story::{Fact, Messages, Narrator};
use super::types::{ErrorBody, GetHistory, History, HistoryMessage};
use crate::auth::ReadsSessions;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::query::Query;

const EVENTS_AT_ONCE: usize = 1000;

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
) -> Result<Json<GetHistory>, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let history = match query.text("type") {
        Some("full") => History::Full(full(&engine, &tenant, &session_id).await?),
        Some("compacted") => {
            let context = engine.context(&tenant, &session_id).await?;
            // Last, so that a question that is shown as open was not answered in the meantime.
            let state = engine.session_detail(&tenant, &session_id).await?.state;
            History::Compacted(compacted(&context, &state))
        }
        _ => return Err(Problem::validation("type", "must be compacted or full")),
    };
    Ok(Json(GetHistory { history }))
}

async fn full(
    engine: &Engine,
    tenant: &TenantId,
    session_id: &SessionId,
) -> Result<Vec<HistoryMessage>, Problem> {
    let (mut narrator, mut messages) = (Narrator::default(), Messages::default());
    let mut after = 0;
    loop {
        let (types, order, limit) = (Vec::new(), Order::Ascending, EVENTS_AT_ONCE);
        let query = EventQuery { after: Some(after), before: None, types, order, limit };
        let events = engine.events(tenant, session_id, query).await?;
        for event in &events {
            after = event.sequence;
            narrator.tell(event).into_iter().for_each(|fact| messages.add(fact));
        }
        if events.len() < EVENTS_AT_ONCE {
            narrator.end().for_each(|fact| messages.add(fact));
            return Ok(messages.into_list());
        }
    }
}

/// What the model reads, without the agent's instructions, and with what the application is asked besides.
fn compacted(context: &Context, state: &State) -> Vec<HistoryMessage> {
    let mut messages = Messages::default();
    let system = context.system_messages().iter().cloned().map(Fact::System);
    let read = context.messages().into_iter().flat_map(facts);
    // A turn that waits for some results may have others.
    let open = context.open_results().into_iter().map(result);
    // Whether to go on over a budget is a question of ours, and waits for an answer like any other call.
    let ours = state.pending().filter(|action| action.call.budget.is_some()).map(|action| Fact::Call {
        id: action.call.id.clone(),
        name: action.call.tool.clone(),
        input: action.call.input.clone(),
    });
    system.chain(read).chain(open).chain(ours).for_each(|fact| messages.add(fact));
    messages.into_list()
}

fn facts(message: Message) -> Vec<Fact> {
    match message {
        Message::User(content) => vec![Fact::User(content)],
        Message::ToolResults(outcomes) => outcomes.into_iter().map(result).collect(),
        Message::Assistant(parts) => {
            let said = parts.into_iter().map(|part| match part {
                AssistantPart::Thinking { text, .. } => Fact::Thinking(text),
                AssistantPart::Text(text) => Fact::Text(text),
                AssistantPart::ToolCall { id, name, input } => Fact::Call { id, name, input },
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
