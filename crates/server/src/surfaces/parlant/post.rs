//! Adding events to a session: what customers, people and applications say.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing;
use petasos_core::amendments::Amendments;
use petasos_core::event::{ApplicationContent, ApplicationEvent, Event, PersonNote};
use petasos_core::ids::{SessionId, TenantId};
use petasos_core::key::KeyScope;
use petasos_core::metadata::metadata_problem;
use petasos_core::step::UserEvent;
use petasos_engine::{Engine, LogRange};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::errors::Detail;
use super::types::{RawEvent, SOURCES};
use super::view::RawView;
use crate::auth::WritesSessions;
use crate::body::{Body, refuse_too_long};
use crate::openapi::{Api, Operation};
use crate::path::id;
use crate::problem::Problem;
use crate::server::App;
use crate::surfaces::conversation::follow;
use crate::surfaces::conversation::requests::{
    Author, MAX_AUTHOR_CHARS, author_name, message_text, person_message, user_message,
};
use crate::surfaces::conversation::types::StatusName;

/// The most bytes that the data of an event may have as JSON.
const MAX_DATA_BYTES: usize = 256 * 1024;

pub(super) fn api() -> Api {
    let operation = Operation::new::<RawEvent>(
        "parlantCreateEvent",
        "Adds an event to a session.",
        KeyScope::SessionsWrite,
    )
    .takes::<CreateEvent>()
    .query("moderation", "Has no effect.", json!({ "enum": ["auto", "paranoid", "none"] }))
    .creates()
    .fails_with::<Detail>();
    Api::default().post("/parlant/sessions/{sessionId}/events", routing::post(create), operation)
}

/// An event to add.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantCreateEvent")]
struct CreateEvent {
    /// `message`, `status` or `custom`.
    kind: String,
    source: String,
    message: Option<String>,
    participant: Option<Participant>,
    /// What the agent is to say on demand.
    guidelines: Option<Vec<Guideline>>,
    data: Option<Value>,
    status: Option<String>,
    /// The application's own tags, which the model does not see.
    metadata: Option<Map<String, Value>>,
    /// Whether the agent acts on an internal note at once; it does unless this is false.
    trigger_processing: Option<bool>,
}

/// Somebody who says something.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantParticipant")]
struct Participant {
    id: Option<String>,
    display_name: String,
}

/// What the agent is to say, and why.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "ParlantGuideline")]
struct Guideline {
    action: String,
    /// `unspecified`, `buy_time` or `follow_up`.
    rationale: Option<String>,
}

async fn create(
    State(app): State<App>,
    WritesSessions(tenant): WritesSessions,
    Path(session): Path<String>,
    Body(body): Body<CreateEvent>,
) -> Result<(StatusCode, Json<RawEvent>), Problem> {
    let session_id: SessionId = id("session", &session)?;
    let header = app.engine.session(&tenant, &session_id).await?.header;
    let is_asked = body.kind == "message" && body.source == "ai_agent";
    let taken = app.engine.send(&tenant, &session_id, vec![read(body)?]).await?;
    let lost = || Problem::internal("an event that was taken is not in the log");
    let mut event = taken.into_iter().next_back().ok_or_else(lost)?;
    if is_asked {
        // Whoever asks the agent to speak gets to see that it has begun.
        event = status_after(&app.engine, &tenant, &session_id, &event).await?.unwrap_or(event);
    }
    let fold = RawView::of(&header, Amendments::default());
    let shown = follow::one(&app, &tenant, &session_id, fold, event.sequence).await?;
    Ok((StatusCode::CREATED, Json(shown.ok_or_else(lost)?)))
}

/// The first status of the turn that an event opened, if it did.
async fn status_after(
    engine: &Engine,
    tenant: &TenantId,
    session_id: &SessionId,
    event: &Event,
) -> Result<Option<Event>, Problem> {
    if !event.payload.opens_turn() {
        return Ok(None);
    }
    let range = LogRange {
        after: Some(event.sequence),
        types: vec!["session.status_running".to_owned()],
        likely: 1,
        ..LogRange::default()
    };
    Ok(engine.log_part(tenant, session_id, range).await?.next().await?)
}

fn read(mut body: CreateEvent) -> Result<UserEvent, Problem> {
    let metadata = body.metadata.take().unwrap_or_default();
    if let Some(problem) = metadata_problem(&metadata) {
        return Err(Problem::validation("metadata", problem));
    }
    let bytes = body.data.as_ref().map_or(0, |data| data.to_string().len());
    if bytes > MAX_DATA_BYTES {
        let problem = format!("has {bytes} bytes as JSON; at most {MAX_DATA_BYTES} are allowed");
        return Err(Problem::validation("data", problem));
    }
    match body.kind.as_str() {
        "message" => message(body, metadata),
        "custom" => {
            let data = body.data.ok_or_else(|| missing("data"))?;
            added(body.source, ApplicationContent::Custom { data }, metadata)
        }
        "status" => {
            let status = body.status.ok_or_else(|| missing("status"))?;
            StatusName::read(&status)
                .ok_or_else(|| Problem::validation("status", format!("{status:?} is not a status")))?;
            let data = match body.data {
                None | Some(Value::Null) => Map::new(),
                Some(Value::Object(data)) => data,
                Some(_) => return Err(Problem::validation("data", "must be an object")),
            };
            added(body.source, ApplicationContent::Status { status, data }, metadata)
        }
        kind => Err(Problem::validation(
            "kind",
            format!("{kind:?} cannot be added; message, status and custom can"),
        )),
    }
}

fn added(
    source: String,
    content: ApplicationContent,
    metadata: Map<String, Value>,
) -> Result<UserEvent, Problem> {
    if !SOURCES.contains(&source.as_str()) {
        return Err(unknown_source(&source));
    }
    Ok(UserEvent::Application(ApplicationEvent { source, content, metadata }))
}

fn message(body: CreateEvent, metadata: Map<String, Value>) -> Result<UserEvent, Problem> {
    let field = "message";
    let needed = |text: Option<String>| text.ok_or_else(|| missing(field));
    match body.source.as_str() {
        "customer" => user_message(field, needed(body.message)?, metadata),
        "human_agent" => {
            let Participant { id, display_name } =
                body.participant.ok_or_else(|| missing("participant.display_name"))?;
            refuse_too_long("participant.id", id.as_deref().unwrap_or_default(), MAX_AUTHOR_CHARS)?;
            let author = Author { field: "participant.display_name", name: display_name, id };
            person_message(Some(author), field, needed(body.message)?, metadata)
        }
        "human_agent_on_behalf_of_ai_agent" => person_message(None, field, needed(body.message)?, metadata),
        "internal_note" => {
            let name = body.participant.map(|participant| participant.display_name);
            Ok(UserEvent::PersonNote(PersonNote {
                text: message_text(field, needed(body.message)?)?,
                author: name.map(|name| author_name("participant.display_name", name)).transpose()?,
                opens_turn: body.trigger_processing.unwrap_or(true),
                metadata,
            }))
        }
        "ai_agent" if body.message.is_some() => {
            let problem = "is what the agent itself says; leave it out, and say in guidelines what to say";
            Err(Problem::validation(field, problem))
        }
        "ai_agent" => {
            // The model reads them as one message.
            let text = message_text("guidelines", instruction(&body.guidelines.unwrap_or_default()))?;
            Ok(UserEvent::PersonNote(PersonNote { text, author: None, opens_turn: true, metadata }))
        }
        source => Err(unknown_source(source)),
    }
}

/// What the agent is told when it is asked to speak.
fn instruction(guidelines: &[Guideline]) -> String {
    if guidelines.is_empty() {
        return "Go on with the conversation: say to the user what is to be said now.".to_owned();
    }
    let line = |guideline: &Guideline| {
        let why = match guideline.rationale.as_deref() {
            Some("buy_time") => " (to bridge the time until there is more to say)",
            Some("follow_up") => " (to follow up on what was said)",
            _ => "",
        };
        format!("\n- {}{why}", guideline.action)
    };
    let lines: String = guidelines.iter().map(line).collect();
    format!("Say something to the user now that does this:{lines}")
}

fn missing(field: &str) -> Problem {
    Problem::validation(field, "is missing")
}

fn unknown_source(source: &str) -> Problem {
    Problem::validation("source", format!("{source:?} cannot say this"))
}
