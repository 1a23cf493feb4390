//! JSON bodies, with errors that say what is wrong with them.

use std::time::Duration;

use axum::body::{HttpBody as _, to_bytes};
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use petasos_engine::Caller;
use serde::de::DeserializeOwned;

use crate::problem::Problem;
use crate::server::App;
use crate::unknown_fields::IgnoredFields;

/// Refuses a body that is announced to be too large, before any of it is read.
pub(crate) fn refuse_too_large(headers: &HeaderMap, most: usize) -> Result<(), Problem> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length: Option<usize> = announced.and_then(|length| length.parse().ok());
    if length.is_some_and(|length| length > most) { Err(too_large(most)) } else { Ok(()) }
}

/// Refuses fields in a body that nobody would read, or names them. The body is read for that.
pub(crate) async fn refuse_unread_fields(
    app: &App,
    caller: &Caller,
    request: &mut Request,
) -> Result<(), Problem> {
    if request.body().is_end_stream() {
        return Ok(());
    }
    let Some(known) = app.settings.known_fields.of_unread_body(request, caller) else { return Ok(()) };
    let body = std::mem::take(request.body_mut());
    let reading = tokio::time::timeout(app.settings.body_time, to_bytes(body, app.settings.max_body_bytes));
    let bytes = reading.await.map_err(|_| too_slow(app.settings.body_time))?;
    let bytes = bytes.map_err(|_| Problem::validation("body", "could not be read"))?;
    let ignored = request.extensions().get::<IgnoredFields>();
    app.settings.field_rule.apply(known, bytes, ignored).map(|_| ())
}

/// A body as it came, but for fields that mean nothing and are ignored.
pub(crate) struct Raw(pub(crate) Bytes);

impl FromRequest<App> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let known = app.settings.known_fields.of(&request);
        let ignored = request.extensions().get::<IgnoredFields>().cloned();
        let bytes = tokio::time::timeout(app.settings.body_time, Bytes::from_request(request, app)).await;
        let bytes = bytes.map_err(|_| too_slow(app.settings.body_time))?;
        let bytes = bytes.map_err(|rejection| unreadable(&rejection, app.settings.max_body_bytes))?;
        match known {
            Some(known) => app.settings.field_rule.apply(known, bytes, ignored.as_ref()).map(Raw),
            None => Ok(Raw(bytes)),
        }
    }
}

/// A JSON body. The content type is not looked at: whoever sends JSON here means it.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let Raw(bytes) = Raw::from_request(request, app).await?;
        parse(&bytes).map(Body)
    }
}

/// Reads a JSON body that is an object. An absent one is an empty object, for requests that have nothing to say.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // Serde would take a list for the fields of an object, in their order. It still does for objects in the body: to say
    // no there would take a deserializer of our own around all others.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(Problem::validation("body", "must be a JSON object, and is a list"));
    }
    parse_any(bytes)
}

/// Reads a JSON body of any shape.
pub(crate) fn parse_any<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut deserializer).map_err(unexpected)?;
    deserializer.end().map_err(|error| Problem::validation("body", error))?;
    Ok(parsed)
}

/// Refuses a text of too many characters.
pub(crate) fn refuse_too_long(field: &str, text: &str, most: usize) -> Result<(), Problem> {
    match text.chars().count() {
        count if count > most => {
            Err(Problem::validation(field, format!("has {count} characters; at most {most} are allowed")))
        }
        _ => Ok(()),
    }
}

/// Says which field is not what it should be.
fn unexpected(error: serde_path_to_error::Error<serde_json::Error>) -> Problem {
    let path = error.path().to_string();
    if let Some(name) = missing(&error.inner().to_string()) {
        let field = if path == "." { name.to_owned() } else { format!("{path}.{name}") };
        return Problem::validation(field, "is missing");
    }
    // What is not JSON at all is somewhere in a field that is not known.
    let field = match path.trim_end_matches('?').trim_end_matches('.') {
        "" => "body",
        field => field,
    };
    Problem::validation(field, format!("is not what is expected here: {}", in_plain_words(error.inner())))
}

/// The field that is missing, if that is what serde says.
fn missing(problem: &str) -> Option<&str> {
    problem.strip_prefix("missing field `")?.split_once('`').map(|(name, _)| name)
}

/// What serde says, in the words of JSON and without the names of our types.
fn in_plain_words(error: &serde_json::Error) -> String {
    let problem = error.to_string();
    if !error.is_data() {
        // It is no JSON, and the place is all that helps.
        return problem;
    }
    // The field says where.
    let said = problem.rfind(" at line ").and_then(|at| problem.get(..at)).unwrap_or(&problem);
    let Some((found, expected)) = said.rsplit_once(", expected ") else { return said.to_owned() };
    let found = match found {
        "invalid type: map" => "invalid type: object".to_owned(),
        "invalid type: sequence" => "invalid type: list".to_owned(),
        found => match found.strip_prefix("unknown variant ") {
            Some(value) => format!("unknown value {value}"),
            None => found.to_owned(),
        },
    };
    let expected = match expected {
        "a map" => "an object",
        "a sequence" => "a list",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        name if name.starts_with("struct ") || name.starts_with("internally tagged enum ") => "an object",
        expected => expected,
    };
    format!("{found}, expected {expected}")
}

fn unreadable(rejection: &BytesRejection, most: usize) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        too_large(most)
    } else {
        Problem::validation("body", "could not be read")
    }
}

fn too_slow(allowed: Duration) -> Problem {
    let message = format!("The body did not arrive within {} s.", allowed.as_secs_f32());
    Problem::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message)
}

fn too_large(most: usize) -> Problem {
    let message = format!(
        "The body is larger than {most} bytes, the limit that limits.body_bytes in the configuration sets."
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message)
}
