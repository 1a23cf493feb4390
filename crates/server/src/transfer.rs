//! `/v1/sessions/{sessionId}/export` and `/v1/sessions/import`: sessions as JSON lines, for administrators.
//!
//! The lines are the persisted shapes and not those of any protocol, so that a session comes back as it was.

use axum::Json;
use axum::body::Body as AnswerBody;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use petasos_core::event::Event;
use petasos_core::export::{ExportHeader, Format};
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::key::KeyScope;
use petasos_engine::{Engine, Export, ImportAs, Imported};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::auth::Administers;
use crate::body::Raw;
use crate::openapi::{Api, Operation};
use crate::problem::Problem;
use crate::query::Query;

/// The most characters of what is wrong with a line that an answer repeats.
const MAX_PROBLEM: usize = 300;

pub(crate) fn api() -> Api {
    let admin = KeyScope::Admin;
    Api::default()
        .get(
            "/v1/sessions/{sessionId}/export",
            get(export),
            Operation::new::<String>("exportSession", "A session with its whole log, as JSON lines.", admin)
                .answers_as("application/jsonl"),
        )
        .post(
            "/v1/sessions/import",
            post(import),
            Operation::new::<ImportedSession>("importSession", "Takes in an exported session.", admin)
                .takes_text()
                .query("newId", "Gives the session a new id.", json!({ "type": "boolean" }))
                .creates(),
        )
}

/// A session that was taken in.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ImportedSession {
    id: SessionId,
    agent_id: AgentId,
    agent_version: u32,
    /// How many events its log has.
    last_sequence: u64,
    /// Whether it was exported while a turn was running, which is interrupted.
    interrupted: bool,
}

impl From<Imported> for ImportedSession {
    fn from(imported: Imported) -> Self {
        let Imported { session, interrupted } = imported;
        ImportedSession {
            id: session.header.id,
            agent_id: session.header.agent_id,
            agent_version: session.header.agent_version,
            last_sequence: session.view.last_sequence,
            interrupted,
        }
    }
}

async fn export(
    State(engine): State<Engine>,
    Administers(tenant): Administers,
    Path(session): Path<String>,
) -> Result<Response, Problem> {
    let id: SessionId = session.parse().map_err(|_| Problem::not_found("session", &session))?;
    let export = engine.export_session(&tenant, &id).await?;
    let mut first = Vec::new();
    write_line(&mut first, &export.header).map_err(|error| Problem::internal(&error.to_string()))?;
    let first = stream::once(async { Ok(Bytes::from(first)) });
    // A log that cannot be read to its end cuts the answer, which the client notices.
    let pages = first.chain(stream::try_unfold(export, |export| async {
        next_page(export).await.inspect_err(|error| tracing::warn!(%error, "an export was cut"))
    }));
    let content_type = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((content_type, AnswerBody::from_stream(pages)).into_response())
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

async fn next_page(mut export: Export) -> Result<Option<(Bytes, Export)>, Failure> {
    let events = export.next_events().await?;
    let mut page = Vec::new();
    for event in &events {
        write_line(&mut page, event)?;
    }
    Ok((!events.is_empty()).then(|| (Bytes::from(page), export)))
}

fn write_line(lines: &mut Vec<u8>, value: &impl Serialize) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *lines, value)?;
    lines.push(b'\n');
    Ok(())
}

async fn import(
    State(engine): State<Engine>,
    Administers(tenant): Administers,
    query: Query,
    Raw(body): Raw,
) -> Result<(StatusCode, Json<ImportedSession>), Problem> {
    let import_as = match query.parsed("newId", "true or false")? {
        Some(true) => ImportAs::Another,
        None | Some(false) => ImportAs::Itself,
    };
    let (header, events) = read(&body)?;
    drop(body);
    let imported = engine.import_session(&tenant, header, events, import_as).await?;
    Ok((StatusCode::CREATED, Json(imported.into())))
}

/// Reads the lines of a file.
fn read(body: &[u8]) -> Result<(ExportHeader, Vec<Event>), Problem> {
    let body = body.strip_suffix(b"\n").unwrap_or(body);
    let mut lines = body.split(|byte| *byte == b'\n').enumerate();
    let first = lines.next().map(|(_, line)| line).unwrap_or_default();
    let format: Format = parse(0, first)?;
    if !format.is_known() {
        let known = Format::current();
        let problem = format!(
            "is {:?} version {}, and this release reads {:?} version {}",
            format.format.chars().take(64).collect::<String>(),
            format.version,
            known.format,
            known.version
        );
        return Err(Problem::validation("line 1", problem));
    }
    let header = parse(0, first)?;
    let events = lines.map(|(index, line)| parse(index, line)).collect::<Result<_, _>>()?;
    Ok((header, events))
}

fn parse<T: DeserializeOwned>(index: usize, line: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(line).map_err(|error| {
        let problem: String = error.to_string().chars().take(MAX_PROBLEM).collect();
        Problem::validation(format!("line {}", index + 1), format!("is not what is expected here: {problem}"))
    })
}
