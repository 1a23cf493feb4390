//! What happens to fields of a body that mean nothing: they are refused, or ignored and named.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::{HeaderName, HeaderValue, Request};
use axum::response::Response;
use bytes::Bytes;
use serde_json::Value;

use crate::known_fields::{BodyFields, UnknownField};
use crate::problem::Problem;

/// The header that names the fields of a request that were ignored.
pub(crate) const IGNORED: HeaderName = HeaderName::from_static("x-petasos-ignored");
/// The most bytes of that header.
const MAX_HEADER: usize = 2048;
/// The most characters of a path in an error or in the log.
const MAX_PATH: usize = 200;
/// The most fields that the log names.
const MAX_LOGGED: usize = 1000;

/// What happens to fields of a body that mean nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownFields {
    /// The request is refused by the name of the first.
    #[default]
    Refuse,
    /// They are left out, and named in the answer and in the log.
    Ignore,
}

/// The rule of a server, and what its log has named.
#[derive(Default)]
pub(crate) struct FieldRule {
    unknown: UnknownFields,
    logged: Mutex<HashSet<String>>,
}

/// The fields of one request that were ignored, for the header of its answer.
#[derive(Clone, Default)]
pub(crate) struct IgnoredFields(Arc<OnceLock<String>>);

impl FieldRule {
    pub(crate) fn new(unknown: UnknownFields) -> Self {
        FieldRule { unknown, logged: Mutex::default() }
    }

    /// Remembers with a request what will be ignored of it, if anything may be.
    pub(crate) fn note_in<B>(&self, request: &mut Request<B>) -> Option<IgnoredFields> {
        let noted = (self.unknown == UnknownFields::Ignore).then(IgnoredFields::default)?;
        request.extensions_mut().insert(noted.clone());
        Some(noted)
    }

    /// The body of a request without what means nothing in it. What is no JSON is left to whoever reads it.
    pub(crate) fn apply(
        &self,
        known: &BodyFields,
        bytes: Bytes,
        ignored: Option<&IgnoredFields>,
    ) -> Result<Bytes, Problem> {
        let Ok(mut body) = serde_json::from_slice::<Value>(&bytes) else { return Ok(bytes) };
        let unknown = known.take_unknown(&mut body);
        match (unknown.first(), self.unknown) {
            (None, _) => Ok(bytes),
            (Some(first), UnknownFields::Refuse) => Err(refusal(first)),
            (Some(_), UnknownFields::Ignore) => {
                unknown.iter().for_each(|field| self.log(&field.path));
                if let Some(IgnoredFields(noted)) = ignored {
                    // A request has one body.
                    let _ = noted.set(header_text(&unknown));
                }
                Ok(body.to_string().into())
            }
        }
    }

    /// Names a field once. Entries of a list count as one.
    fn log(&self, path: &str) {
        let (mut field, mut in_index) = (String::new(), false);
        for character in path.chars().take(MAX_PATH) {
            in_index = character == '[' || (in_index && character != ']');
            if !in_index || character == '[' {
                field.push(character);
            }
        }
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < MAX_LOGGED && logged.insert(field.clone()) {
            tracing::warn!(?field, "a field of a request means nothing and is ignored");
        }
    }
}

fn refusal(field: &UnknownField) -> Problem {
    let hint = field.nearest.as_ref().map(|nearest| format!("; did you mean {nearest}?"));
    let path: String = field.path.chars().take(MAX_PATH).collect();
    Problem::validation(path, format!("is not a known field{}", hint.unwrap_or_default()))
}

/// The paths as a header can hold them: separated by commas, everything but plain characters as in a URL.
fn header_text(unknown: &[UnknownField]) -> String {
    let mut text = String::new();
    for (count, field) in unknown.iter().enumerate() {
        let mut path = String::new();
        for byte in field.path.bytes() {
            match byte {
                b',' | b'%' | 0..=b' ' | 0x7f.. => path.push_str(&format!("%{byte:02X}")),
                _ => path.push(char::from(byte)),
            }
        }
        if text.len() + path.len() > MAX_HEADER {
            let separator = if count == 0 { "" } else { ", " };
            text.push_str(&format!("{separator}{} more", unknown.len() - count));
            break;
        }
        if count > 0 {
            text.push_str(", ");
        }
        text.push_str(&path);
    }
    text
}

impl IgnoredFields {
    /// Names what was ignored in the answer.
    pub(crate) fn put_on(&self, response: &mut Response) {
        if let Some(value) = self.0.get().and_then(|text| HeaderValue::from_str(text).ok()) {
            response.headers_mut().insert(IGNORED, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_fits_into_the_header() {
        let field = |path: &str| UnknownField { path: path.to_owned(), nearest: None };
        assert_eq!(header_text(&[field("a.b[0]"), field("c,d\n"), field("é")]), "a.b[0], c%2Cd%0A, %C3%A9");
        let many: Vec<UnknownField> = (0..1000).map(|number| field(&format!("field_{number}"))).collect();
        let text = header_text(&many);
        assert!(text.len() < MAX_HEADER + 20 && text.ends_with(" more"), "{text}");
        assert!(header_text(&[field(&"x".repeat(5000))]).ends_with("1 more"));
    }
}
