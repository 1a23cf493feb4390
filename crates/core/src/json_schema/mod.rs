//! The one door through which JSON Schemas of callers, plugins and MCP servers come in.
//!
//! A schema of two kilobytes can stand for 10^13 checks: a chain of definitions that each apply the next one ten times.
//! [`SchemaIndex::new`] therefore bounds what a schema weighs, how deep it is nested and to how many checks of a single
//! value it expands, and says where a bound was passed. Every schema goes through it when it is taken in, and again
//! before it is used, because it may have been stored by a release that did not check.

mod bounds;
mod expansion;
mod fold;
mod index;
mod keywords;

pub use bounds::{
    MAX_BYTES, MAX_DEPTH, MAX_EXPANSION, MAX_LIST, MAX_PATTERN_BYTES, MAX_PATTERNS, MAX_REFERENCES,
    MAX_SUBSCHEMAS,
};
pub use fold::plain_object;
pub use index::SchemaIndex;

use serde_json::Value;

/// A schema that is not taken, with the place of the problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}{}", at(.place))]
pub struct SchemaProblem {
    /// A JSON pointer into the schema; empty for the schema as a whole.
    pub place: String,
    /// The rule that was broken.
    pub problem: String,
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" (at {place})") }
}

impl SchemaProblem {
    fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        SchemaProblem { place: place.into(), problem: problem.into() }
    }
}

/// Checks the bounds of a schema that nothing is checked against here, such as that of a tool's arguments.
pub fn check_bounds(schema: &Value) -> Result<(), SchemaProblem> {
    SchemaIndex::new(schema).map(drop)
}

#[cfg(test)]
mod tests;
