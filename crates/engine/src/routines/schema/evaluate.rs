//! Checks a value against a schema (2020-12) in a bounded number of steps.
//!
//! Every schema that is applied, every keyword and every part of a text costs steps, and the check ends when they are
//! used up. A schema that is reached by a reference is applied to the same part of a value only once, so references
//! cannot multiply. Both together make the cost of a check known before it begins, whatever the schema says.

use std::collections::HashMap;
use std::rc::Rc;

use petasos_core::json_schema::SchemaIndex;
use serde_json::{Map, Value};

use super::evaluated::Evaluated;
use super::patterns::{Pattern, Patterns};
use super::{Mismatch, path_parts};

/// How many schemas may be under way at once, each within the one before: the stack is as deep.
const MAX_NESTING: usize = 256;
/// What remembering a result costs, in steps: it takes memory.
const REMEMBER_STEPS: u64 = 10;
/// How much of a value a message shows.
const SHOWN_BYTES: usize = 200;

/// Why a check ended without a result.
#[derive(Debug, Clone)]
pub(super) enum Stop {
    /// The value does not fit. Where nobody will read why, there is no mismatch.
    Unfit(Option<Box<Mismatch>>),
    /// A bound was reached before it was known.
    TooCostly(String),
}

pub(super) type Outcome<T> = Result<T, Stop>;

/// A place in the value.
#[derive(Clone, Copy)]
pub(super) enum Part<'v> {
    Name(&'v str),
    Item(usize),
}

type Remembered<'v> = HashMap<(usize, usize), Option<Rc<Evaluated<'v>>>>;

/// A check under way.
pub(super) struct Evaluation<'s, 'v> {
    pub(super) index: &'s SchemaIndex<'s>,
    pub(super) patterns: &'s mut Patterns,
    pub(super) steps: u64,
    nesting: usize,
    path: Vec<Part<'v>>,
    /// Greater than zero while nobody reads why a value does not fit.
    unread: usize,
    /// What schemas that references name came to, by the address of the schema and of the value.
    remembered: Remembered<'v>,
    /// Whether the schema asks which parts of a value were evaluated.
    pub(super) tracks_evaluated: bool,
}

impl<'s, 'v> Evaluation<'s, 'v> {
    pub(super) fn new(index: &'s SchemaIndex<'s>, patterns: &'s mut Patterns, steps: u64) -> Self {
        let tracks_evaluated = index.uses("unevaluatedProperties") || index.uses("unevaluatedItems");
        Evaluation {
            index,
            patterns,
            steps,
            nesting: 0,
            path: Vec::new(),
            unread: 0,
            remembered: HashMap::new(),
            tracks_evaluated,
        }
    }

    /// Applies a schema to a value.
    pub(super) fn apply(&mut self, schema: &'s Value, value: &'v Value) -> Outcome<Evaluated<'v>> {
        self.spend(1)?;
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => {
                return Err(
                    self.unfit(schema, "", || format!("False schema does not allow {}", shown(value)))
                );
            }
            _ => return Ok(Evaluated::default()),
        };
        if self.nesting == MAX_NESTING {
            let problem = format!("more than {MAX_NESTING} schemas are nested at one place of the value");
            return Err(Stop::TooCostly(problem));
        }
        self.nesting += 1;
        let outcome = self.apply_keywords(schema, fields, value);
        self.nesting -= 1;
        outcome
    }

    fn apply_keywords(
        &mut self,
        schema: &'s Value,
        fields: &'s Map<String, Value>,
        value: &'v Value,
    ) -> Outcome<Evaluated<'v>> {
        self.spend(fields.len())?;
        for (keyword, argument) in fields {
            self.assert(schema, keyword, argument, value)?;
        }
        let mut evaluated = Evaluated::default();
        for keyword in ["$ref", "$dynamicRef"] {
            if let Some(target) = self.index.target(schema, keyword) {
                let seen = self.apply_target(target, value)?;
                evaluated.merge(seen);
            }
        }
        self.combine(schema, fields, value, &mut evaluated)?;
        match value {
            Value::Object(members) => self.apply_to_members(schema, fields, members, &mut evaluated)?,
            Value::Array(items) => self.apply_to_items(schema, fields, items, &mut evaluated)?,
            _ => {}
        }
        Ok(evaluated)
    }

    /// Applies a schema that a reference names, once for each part of the value.
    fn apply_target(&mut self, target: &'s Value, value: &'v Value) -> Outcome<Evaluated<'v>> {
        let key = (address(target), address(value));
        match self.remembered.get(&key) {
            Some(Some(evaluated)) => {
                let evaluated = Evaluated::clone(evaluated);
                self.spend(evaluated.weight())?;
                return Ok(evaluated);
            }
            Some(None) if self.unread > 0 => return Err(Stop::Unfit(None)),
            // It does not fit, and this time somebody reads why.
            Some(None) | None => {}
        }
        let outcome = self.apply(target, value);
        let remembered = match &outcome {
            Ok(evaluated) => Some(Rc::new(evaluated.clone())),
            Err(Stop::Unfit(_)) => None,
            Err(Stop::TooCostly(_)) => return outcome,
        };
        let weight = remembered.as_ref().map_or(0, |evaluated| evaluated.weight() as u64);
        self.spend_steps(REMEMBER_STEPS + weight)?;
        self.remembered.insert(key, remembered);
        outcome
    }

    /// Applies a schema whose mismatch is no mismatch of the whole; none if the value does not fit it.
    pub(super) fn try_apply(
        &mut self,
        schema: &'s Value,
        value: &'v Value,
    ) -> Outcome<Option<Evaluated<'v>>> {
        self.unread += 1;
        let outcome = self.apply(schema, value);
        self.unread -= 1;
        match outcome {
            Ok(evaluated) => Ok(Some(evaluated)),
            Err(Stop::Unfit(_)) => Ok(None),
            Err(stop) => Err(stop),
        }
    }

    /// Applies a schema to a part of the value.
    pub(super) fn apply_to_part(
        &mut self,
        schema: &'s Value,
        part: Part<'v>,
        value: &'v Value,
    ) -> Outcome<()> {
        self.path.push(part);
        let outcome = self.apply(schema, value);
        self.path.pop();
        outcome.map(drop)
    }

    /// Applies a schema to a property's name. Names are no values of their own, so nothing is remembered of them.
    pub(super) fn apply_to_name(&mut self, schema: &'s Value, name: &str) -> Outcome<()> {
        let value = Value::String(name.to_owned());
        let path: Vec<Part<'_>> = self.path.clone();
        let mut inner = Evaluation {
            index: self.index,
            patterns: &mut *self.patterns,
            steps: self.steps,
            nesting: self.nesting,
            path,
            unread: self.unread,
            remembered: HashMap::new(),
            tracks_evaluated: self.tracks_evaluated,
        };
        let outcome = inner.apply(schema, &value).map(drop);
        self.steps = inner.steps;
        outcome
    }

    pub(super) fn pattern(&mut self, schema: &Value, pattern: &str) -> Outcome<Rc<Pattern>> {
        self.spend_steps(self.patterns.compile_steps(pattern))?;
        let place = self.index.place(schema);
        self.patterns.get(pattern).map_err(|problem| Stop::TooCostly(format!("at {place}: {problem}")))
    }

    pub(super) fn matches(&mut self, pattern: &Pattern, text: &str) -> Outcome<bool> {
        self.spend_steps(pattern.match_steps(text))?;
        pattern.is_match(text).map_err(Stop::TooCostly)
    }

    pub(super) fn spend(&mut self, steps: usize) -> Outcome<()> {
        self.spend_steps(steps as u64)
    }

    pub(super) fn spend_steps(&mut self, steps: u64) -> Outcome<()> {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Stop::TooCostly("the check takes more steps than are allowed".to_owned())),
        }
    }

    /// The value does not fit a keyword of a schema.
    pub(super) fn unfit(&self, schema: &Value, keyword: &str, message: impl FnOnce() -> String) -> Stop {
        if self.unread > 0 {
            return Stop::Unfit(None);
        }
        let part = |part: &Part<'_>| match part {
            Part::Name(name) => Value::from(*name),
            Part::Item(index) => Value::from(*index),
        };
        let place = self.index.place(schema);
        let pointer = if keyword.is_empty() { place.to_owned() } else { format!("{place}/{keyword}") };
        Stop::Unfit(Some(Box::new(Mismatch {
            message: message(),
            path: self.path.iter().map(part).collect(),
            schema_path: path_parts(&pointer, self.index.root()),
        })))
    }
}

/// Parts of the schema and the value are told apart by where they lie in memory: both are borrowed during the check.
fn address(value: &Value) -> usize {
    std::ptr::from_ref(value) as usize
}

/// A value as a message shows it.
pub(super) fn shown(value: &Value) -> String {
    struct Beginning(Vec<u8>);
    impl std::io::Write for Beginning {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let room = SHOWN_BYTES.saturating_sub(self.0.len());
            self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if bytes.len() > room { Err(std::io::ErrorKind::WriteZero.into()) } else { Ok(bytes.len()) }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut beginning = Beginning(Vec::new());
    let is_whole = serde_json::to_writer(&mut beginning, value).is_ok();
    let text = String::from_utf8_lossy(&beginning.0);
    if is_whole { text.into_owned() } else { format!("{}…", text.trim_end_matches('\u{fffd}')) }
}
