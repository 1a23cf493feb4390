//! Tool calls that arrive in pieces, and which call a piece belongs to.
//!
//! Vendors number the calls of an answer, or give each an id, or do neither; some do both and get one of them wrong.

use serde_json::{Map, Value};

use super::attached::{merge, size};
use crate::wire::parts::Parts;

/// The fields of a call that say what it is; all others are the vendor's own.
const CALL_FIELDS: [&str; 4] = ["index", "id", "type", "function"];
const FUNCTION_FIELDS: [&str; 2] = ["name", "arguments"];

/// The calls of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Calls {
    entries: Vec<Call>,
}

#[derive(Debug)]
struct Call {
    index: Option<u64>,
    /// The key of the call among the parts of the answer.
    key: u64,
    /// The id, and the fields that the vendor wants back with it.
    data: Map<String, Value>,
}

/// A piece of a call.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// The number of the call in its answer.
    pub(super) index: Option<u64>,
    /// The vendor's id; empty if there is none.
    pub(super) id: &'a str,
    /// The tool, or a part of its name; usually in the first piece alone.
    pub(super) name: &'a str,
    /// A part of the arguments.
    pub(super) arguments: String,
}

impl<'a> Piece<'a> {
    /// Reads a piece. Some servers send the arguments as an object and not as text.
    pub(super) fn of(call: &'a Value) -> Self {
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => text.clone(),
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        };
        Piece {
            index: call["index"].as_u64(),
            id: call["id"].as_str().unwrap_or_default(),
            name: function["name"].as_str().unwrap_or_default(),
            arguments,
        }
    }
}

impl Calls {
    /// The key of the call that a piece belongs to; none if it begins a new call.
    pub(super) fn key_of(&self, piece: &Piece<'_>, parts: &Parts) -> Option<u64> {
        let call = self.candidate(piece)?;
        let is_same = call.id() == piece.id && !piece.id.is_empty();
        (is_same || call.goes_on(piece, parts)).then_some(call.key)
    }

    /// Adds a call that begins with this piece.
    pub(super) fn begin(&mut self, piece: &Piece<'_>, key: u64) {
        self.entries.push(Call { index: piece.index, key, data: Map::new() });
    }

    /// Keeps what the vendor wants back with a call. Returns how many bytes that is.
    pub(super) fn keep(&mut self, key: u64, piece: &Value) -> usize {
        let Some(call) = self.entries.iter_mut().find(|call| call.key == key) else { return 0 };
        let mut kept = 0;
        if call.id().is_empty()
            && let Some(id) = piece["id"].as_str().filter(|id| !id.is_empty())
        {
            call.data.insert("id".to_owned(), id.into());
            kept += id.len();
        }
        kept += keep_fields(&mut call.data, piece, &CALL_FIELDS);
        let mut function = Map::new();
        kept += keep_fields(&mut function, &piece["function"], &FUNCTION_FIELDS);
        if !function.is_empty() {
            merge(call.data.entry("function").or_insert(Value::Null), &Value::Object(function));
        }
        kept
    }

    /// What is kept of each call, by its key.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (u64, Map<String, Value>)> {
        std::mem::take(&mut self.entries).into_iter().map(|call| (call.key, call.data))
    }

    /// The call that a piece would continue.
    fn candidate(&self, piece: &Piece<'_>) -> Option<&Call> {
        let latest = |wanted: &dyn Fn(&Call) -> bool| self.entries.iter().rev().find(|call| wanted(call));
        let has_id = |call: &Call| !piece.id.is_empty() && call.id() == piece.id;
        match piece.index {
            Some(_) => latest(&|call| call.index == piece.index && has_id(call))
                .or_else(|| latest(&|call| call.index == piece.index)),
            None => latest(&has_id).or_else(|| self.entries.last()),
        }
    }
}

impl Call {
    fn id(&self) -> &str {
        self.data.get("id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether a piece belongs to this call although its id does not say so. Some servers number every call 0, some give
    /// each piece an id of its own, some repeat the name in each piece: a call begins when a name comes again after
    /// arguments that are whole.
    fn goes_on(&self, piece: &Piece<'_>, parts: &Parts) -> bool {
        let Some((name, arguments)) = parts.call_so_far(self.key) else { return false };
        if piece.name.is_empty() || name.is_empty() {
            return true;
        }
        let has_another_id = !piece.id.is_empty() && !self.id().is_empty();
        let is_told_apart = piece.index.is_some() && !has_another_id;
        if piece.name != name {
            return is_told_apart && !is_whole(arguments);
        }
        if is_told_apart {
            return true;
        }
        match arguments {
            // The same index decides; without one a tool that takes nothing was called twice.
            "" => piece.index.is_some() || (!has_another_id && !piece.arguments.is_empty()),
            _ => !is_whole(arguments),
        }
    }
}

/// Whether arguments are complete.
pub(super) fn is_whole(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<Map<String, Value>>(arguments).is_ok()
}

fn keep_fields(data: &mut Map<String, Value>, piece: &Value, known: &[&str]) -> usize {
    let mut kept = 0;
    for (name, value) in piece.as_object().into_iter().flatten() {
        if value.is_null() || known.contains(&name.as_str()) || data.get(name) == Some(value) {
            continue;
        }
        kept += name.len() + size(value);
        merge(data.entry(name.clone()).or_insert(Value::Null), value);
    }
    kept
}
