//! Reads YAML, and says in one line where it is wrong.

use anyhow::{Result, anyhow};
use petasos_core::nearest::meant;
use serde::de::DeserializeOwned;
use serde_saphyr::{Error, UserMessageFormatter};

/// Reads a text; `name` is what people call it, for example its path.
pub(crate) fn parse<T: DeserializeOwned>(text: &str, name: &str) -> Result<T> {
    serde_saphyr::from_str(text).map_err(|error: Error| explain(&error, name))
}

/// Says what is wrong, and in which line. The text itself is not shown, since it may hold keys.
fn explain(error: &Error, name: &str) -> anyhow::Error {
    let error = error.without_snippet();
    let place = match error.location() {
        Some(location) => format!("{name}:{}:{}", location.line(), location.column()),
        None => name.to_owned(),
    };
    let problem = match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown("key", field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => unknown("value", variant, expected),
        other => without_place(&other.render_with_formatter(&UserMessageFormatter)),
    };
    anyhow!("{place}: {problem}")
}

/// Says that a name is not known, and which one was probably meant.
pub(crate) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let hint = meant(name, known).map(|candidate| format!("; did you mean {candidate}?")).unwrap_or_default();
    format!("unknown {what} {name:?}{hint} (known here: {})", known.join(", "))
}

/// The first line of a text without the place at its end, which stands at the front already.
fn without_place(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(" at line ").map_or(line, |(problem, _)| problem).to_owned()
}
