//! JSON Schemas (2020-12) of routines: what a run is given and what it hands in must fit them.
//!
//! A schema reaches nothing beyond itself: no network, no disk. Its bounds are checked when it is taken in and again when
//! it is used, and a check takes a bounded number of steps. A check that takes long runs on one of a few threads, so that
//! no schema holds up the server.

mod applicators;
mod assertions;
mod evaluate;
mod evaluated;
mod numbers;
mod patterns;
mod worker;

use petasos_core::json_schema::SchemaIndex;
use serde_json::Value;

use self::evaluate::{Evaluation, Stop};
use self::patterns::Patterns;
pub(crate) use self::worker::{CheckError, check, on_thread};

/// A schema that can be checked against.
struct Schema<'a> {
    index: SchemaIndex<'a>,
}

/// Where a value breaks its schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// What is wrong, for people.
    pub message: String,
    /// The place in the value: names, and numbers for places in arrays.
    pub path: Vec<Value>,
    /// The place in the schema.
    pub schema_path: Vec<Value>,
}

impl Mismatch {
    /// A check that ended at a bound: nobody knows whether the value fits, so it is not taken.
    fn too_costly(problem: &str) -> Self {
        let message = format!("the value cannot be checked against its schema: {problem}");
        Mismatch { message, path: Vec::new(), schema_path: Vec::new() }
    }
}

/// Says what is wrong with a schema that is to be taken in.
pub(crate) fn schema_problem(schema: &Value) -> Option<String> {
    let index = match SchemaIndex::new(schema) {
        Ok(index) => index,
        Err(problem) => return Some(problem.to_string()),
    };
    if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
        let problem = format!("it is no JSON Schema (2020-12): {error}");
        return Some(match error.instance_path().as_str() {
            "" => problem,
            place => format!("{problem} (at {place})"),
        });
    }
    index.broken_reference().map(ToString::to_string).or_else(|| index.patterns().find_map(pattern_problem))
}

fn pattern_problem((place, pattern): (&str, &str)) -> Option<String> {
    let problem = patterns::Pattern::compile(pattern).err()?;
    Some(if place.is_empty() { problem } else { format!("{problem} (at {place})") })
}

impl<'a> Schema<'a> {
    /// Reads a schema that was taken in before, maybe by an older release, and says what is wrong with it.
    fn read(schema: &'a Value) -> Result<Self, String> {
        let index = SchemaIndex::new(schema).map_err(|problem| problem.to_string())?;
        match index.broken_reference() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(Schema { index }),
        }
    }

    /// Checks a value in at most so many steps; an error without a mismatch says which bound was reached.
    fn check(&self, value: &Value, steps: u64) -> Result<(), Stop> {
        let mut patterns = Patterns::default();
        Evaluation::new(&self.index, &mut patterns, steps).apply(self.index.root(), value).map(drop)
    }
}

/// The parts of a JSON pointer. Places in arrays become numbers, names of fields stay text even if they are digits.
fn path_parts(pointer: &str, root: &Value) -> Vec<Value> {
    let mut node = Some(root);
    let parts = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~"));
    let walk = |part: String| {
        let index = node.filter(|node| node.is_array()).and_then(|_| part.parse::<usize>().ok());
        node = match index {
            Some(index) => node.and_then(|node| node.get(index)),
            None => node.and_then(|node| node.get(&part)),
        };
        index.map_or(Value::String(part), Value::from)
    };
    parts.map(walk).collect()
}

#[cfg(test)]
mod tests;
