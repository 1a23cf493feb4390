//! Errors as HTTP: the one place that maps them.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use petasos_core::ids::EventId;
use petasos_core::step::Refusal;
use petasos_engine::Error;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// An answer that is an error: a code for programs, a text for people, and fields that help.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    fields: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// The body of an error.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemBody {
    /// A code for programs.
    error: &'static str,
    /// What happened and what to do, for people.
    message: String,
    /// Fields that help, such as `field`, `turn_id` or `pending`.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Problem { status, code, message: message.into(), fields: Map::new(), headers: Vec::new() }
    }

    /// What happened, for the log.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The request cannot be used; `field` says where.
    pub(crate) fn validation(field: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        let field = field.into();
        let message = format!("{field}: {problem}");
        Problem::new(StatusCode::BAD_REQUEST, "validation_error", message).with("field", field)
    }

    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        let id: String = id.chars().take(128).collect();
        Problem::new(StatusCode::NOT_FOUND, "not_found", format!("There is no {kind} {id}."))
    }

    /// Another turn has to end first.
    pub(crate) fn turn_in_progress(turn_id: &EventId) -> Self {
        let message = format!("The turn {turn_id} is running; wait until it is over, and send this again.");
        let problem = Problem::new(StatusCode::CONFLICT, "turn_in_progress", message);
        problem.with("turn_id", turn_id.to_string()).no_retry()
    }

    /// Something went wrong on our side. The cause goes to the log and not to the caller.
    pub(crate) fn internal(cause: &str) -> Self {
        tracing::error!(cause, "a request failed");
        let message = "Something went wrong on the server; its log says what.";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Says when to come back.
    pub(crate) fn retry_after(mut self, seconds: u128) -> Self {
        if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
            self.headers.push((header::RETRY_AFTER, value));
        }
        self
    }

    /// Says that sending the same again will not help.
    pub(crate) fn no_retry(self) -> Self {
        self.header(HeaderName::from_static("x-should-retry"), "false")
    }
}

/// What a problem says, beside its body, for surfaces whose errors have another shape.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) fields: Map<String, Value>,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let said = Said { code: self.code, message: self.message.clone(), fields: self.fields.clone() };
        let body = ProblemBody { error: self.code, message: self.message, fields: self.fields };
        let mut response = (self.status, Json(body)).into_response();
        response.headers_mut().extend(self.headers);
        response.extensions_mut().insert(said);
        response
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let message = sentence(&error.to_string());
        let conflict = |code| Problem::new(StatusCode::CONFLICT, code, message.clone());
        match error {
            Error::NotFound { kind, id } => Problem::not_found(kind, &id),
            Error::Refused(refusal) => refused(refusal, message),
            Error::InvalidDefinition(invalid) => Problem::validation(invalid.field, invalid.problem),
            Error::InvalidSkill { name, .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_skill", message).with("skill", name)
            }
            Error::Invalid { field, problem } => Problem::validation(field, problem),
            Error::EgressDenied { field, problem } => {
                let message = format!("{field}: {problem}");
                Problem::new(StatusCode::BAD_REQUEST, "egress_denied", message).with("field", field)
            }
            Error::InputMismatch(mismatch) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "input_validation_failed", mismatch.message)
                    .with("path", mismatch.path)
                    .with("schema_path", mismatch.schema_path)
            }
            Error::KeyReused { run_id } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused", message)
                    .with("run_id", run_id)
            }
            Error::SessionUnusable { .. } => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "session_error", message)
            }
            Error::RunSettled { .. } => conflict("run_settled").no_retry(),
            Error::VersionConflict { actual, .. } => {
                conflict("version_conflict").with("version", actual).no_retry()
            }
            Error::AlreadyExists { .. } => conflict("already_exists").no_retry(),
            Error::MovedOn { .. } => conflict("session_changed"),
            Error::AgentArchived { .. } => conflict("agent_archived").no_retry(),
            Error::Busy { .. } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message).retry_after(1)
            }
            Error::ShuttingDown => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message).retry_after(1)
            }
            Error::CutOff => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message).no_retry()
            }
            Error::Store(cause @ petasos_store::Error::Full { .. }) => store_full(&causes(&cause)),
            Error::Store(cause @ petasos_store::Error::Replaced { .. }) => {
                tracing::error!(%cause, "a request failed");
                let message =
                    "The database was replaced or removed while the server runs. Restart the server.";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, "store_replaced", message)
            }
            Error::Store(cause) => Problem::internal(&causes(&cause)),
        }
    }
}

/// There is no room for what a request wants to write.
fn store_full(cause: &str) -> Problem {
    tracing::error!(cause, "a request failed");
    let message = "The disk or the database is full. Make room, then send this again.";
    Problem::new(StatusCode::INSUFFICIENT_STORAGE, "store_full", message).retry_after(10)
}

fn refused(refusal: Refusal, message: String) -> Problem {
    let conflict = |code| Problem::new(StatusCode::CONFLICT, code, message.clone()).no_retry();
    match refusal {
        Refusal::TurnInProgress { turn_id } => conflict("turn_in_progress").with("turn_id", turn_id),
        Refusal::ActionRequired { turn_id, pending } => {
            conflict("action_required").with("turn_id", turn_id).with("pending", pending)
        }
        Refusal::NotPending { pending, .. }
        | Refusal::SettledTwice { pending, .. }
        | Refusal::WrongAnswer { pending, .. } => conflict("action_not_pending").with("pending", pending),
        Refusal::UnknownPattern { offered, .. } => {
            Problem::validation("pattern", &message).with("patterns", offered)
        }
        Refusal::Archived => conflict("session_archived"),
    }
}

/// Makes a sentence of an error's text.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_uppercase).into_iter().flatten();
    let mut sentence: String = first.chain(characters).collect();
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

/// An error with everything that caused it, on one line.
fn causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
