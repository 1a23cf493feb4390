//! `POST /aap/sessions/{id}/turns`: runs a turn, and shows it.
//!
//! The turn belongs to the session and not to the connection: who goes away finds it in the history.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing;
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::state::Progress;
use petasos_core::step::UserEvent;
use petasos_engine::{Error, Reader, SessionDetail, Submission};

use super::settings::{Choices, Wishes};
use super::show::{Show, Streamed, Whole};
use super::story::Narrator;
use super::types::{AgentResponse, ErrorBody, PostTurn, StreamMode};
use super::{answers, content};
use crate::auth::WritesSessions;
use crate::body::Body;
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::server::App;
use crate::sse;
use crate::valid_keys::Until;

/// How often a turn is read again because something else happened to its session in the meantime.
const MAX_ATTEMPTS: usize = 5;

pub(super) fn api() -> Api {
    let summary = "Runs a turn: one JSON body, or a stream of events.";
    let operation = Operation::new::<AgentResponse>("aapRunTurn", summary, KeyScope::SessionsWrite)
        .takes::<PostTurn>()
        .may_stream()
        .fails_with::<ErrorBody>();
    Api::default().post("/aap/sessions/{sessionId}/turns", routing::post(run), operation)
}

async fn run(
    State(app): State<App>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    until: Until,
    Body(turn): Body<PostTurn>,
) -> Result<Response, Problem> {
    let session_id: SessionId = id("session", &session)?;
    let (reader, show) = begin(&app, &tenant, &session_id, &turn).await?;
    match turn.stream {
        StreamMode::None => {
            let stopping = app.settings.stopping.clone();
            let whole = Whole::new(app.engine, reader, show, stopping);
            Ok(Json(whole.read().await?).into_response())
        }
        mode => Ok(sse::respond(&app, Streamed::new(reader, show, until.into_token(), mode))),
    }
}

/// Sends a turn to its session, all or nothing, and returns what shows it.
async fn begin(
    app: &App,
    tenant: &TenantId,
    session_id: &SessionId,
    turn: &PostTurn,
) -> Result<(Reader, Show), Problem> {
    for _ in 0..MAX_ATTEMPTS {
        let detail = app.engine.session_detail(tenant, session_id).await?;
        let Planned { submission, told } = plan(app, &detail, turn).await?;
        // It listens before there is anything to hear.
        let reader = app.engine.follow_on(&detail)?;
        match app.engine.submit(tenant, session_id, submission).await {
            Err(Error::MovedOn { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(accepted) => {
                let open = open_calls(&detail);
                let begins_at = accepted.last().map_or(detail.state.view.last_sequence, |last| last.sequence);
                return Ok((reader, Show::new(Narrator::with_open_calls(open), told, begins_at)));
            }
        }
    }
    Err(Error::MovedOn { id: session_id.to_string() }.into())
}

struct Planned {
    submission: Submission,
    told: BTreeSet<String>,
}

/// What a turn sends to a session that stands like this.
async fn plan(app: &App, detail: &SessionDetail, turn: &PostTurn) -> Result<Planned, Problem> {
    refuse_while_running(detail)?;
    let sent = answers::read(&detail.state, &turn.messages)?;
    let agent = &*detail.agent;
    let model = detail.state.model(agent);
    if sent.events.iter().any(has_image) && !app.engine.takes_images(model) {
        return Err(no_images("messages", model));
    }
    let mut submission = Submission {
        events: sent.events,
        secrets: BTreeMap::new(),
        answers: sent.secrets,
        expected_sequence: Some(detail.state.view.last_sequence),
    };
    if let Some(wishes) = wishes(detail, turn)? {
        let tools =
            app.engine.server_tools(&detail.header.tenant, agent, detail.header.user_id.as_deref()).await;
        let current = detail.state.settings.clone().unwrap_or_default();
        let chosen = Choices { agent, tools: &tools }.choose(current, wishes)?;
        if detail.state.settings.as_ref() != Some(&chosen.settings) {
            submission.events.insert(0, UserEvent::Settings(chosen.settings));
        }
        submission.secrets = chosen.secrets;
    }
    Ok(Planned { submission, told: sent.told })
}

fn refuse_while_running(detail: &SessionDetail) -> Result<(), Problem> {
    match (&detail.state.turn, detail.state.turn_id()) {
        (Some(turn), Some(turn_id)) if !turn.is_paused() => Err(Problem::turn_in_progress(&turn_id)),
        _ => Ok(()),
    }
}

fn wishes(detail: &SessionDetail, turn: &PostTurn) -> Result<Option<Wishes>, Problem> {
    let mut wishes = Wishes { client_tools: turn.tools.clone(), ..Wishes::default() };
    if let Some(agent) = &turn.agent {
        let own = detail.header.agent_id.as_str();
        if let Some(other) = agent.name.as_deref().filter(|name| *name != own) {
            let problem = format!("the session stays with {own}; create another for {other:?}");
            return Err(Problem::validation("agent.name", problem));
        }
        wishes.server_tools.clone_from(&agent.tools);
        wishes.options = agent.options.clone().unwrap_or_default();
    }
    let any = wishes.server_tools.is_some() || wishes.client_tools.is_some() || !wishes.options.is_empty();
    Ok(any.then_some(wishes))
}

fn has_image(event: &UserEvent) -> bool {
    match event {
        UserEvent::Message(message) => content::has_image(&message.content),
        UserEvent::CustomToolResult(result) | UserEvent::ToolResult(result) => {
            content::has_image(&result.content)
        }
        _ => false,
    }
}

/// That a model takes no images.
pub(super) fn no_images(field: &str, model: &str) -> Problem {
    let problem = format!("the agent's model {model} takes no images; send text, or use another agent");
    Problem::validation(field, problem)
}

/// Calls of the step under way that have no result.
fn open_calls(detail: &SessionDetail) -> Vec<String> {
    let calls = detail.state.turn.iter().flat_map(|turn| turn.calls());
    calls.filter(|call| call.progress != Progress::Done).map(|call| call.id.clone()).collect()
}
