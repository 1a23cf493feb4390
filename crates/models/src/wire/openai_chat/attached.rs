//! What a vendor attaches to an assistant message to be sent back: reasoning that is signed or encrypted, and signatures
//! of thoughts. It is kept as it came and not read.

use serde_json::{Map, Value};

/// The fields of a message that vendors want back: OpenRouter's, and Gemini's.
const FIELDS: [&str; 2] = ["reasoning_details", "extra_content"];

/// The most entries of one list; more than any vendor sends.
const MAX_ENTRIES: usize = 4096;

/// The attached fields so far.
#[derive(Debug, Default)]
pub(super) struct Attached {
    fields: Map<String, Value>,
}

impl Attached {
    /// Takes the attached fields of a delta. Returns how many bytes they brought.
    pub(super) fn read(&mut self, delta: &Value) -> usize {
        let mut brought = 0;
        for name in FIELDS {
            match &delta[name] {
                Value::Null => {}
                Value::Array(pieces) if name == FIELDS[0] => {
                    let list = self.fields.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                    let Value::Array(list) = list else { continue };
                    for piece in pieces {
                        brought += size(piece);
                        add_detail(list, piece);
                    }
                }
                value => {
                    brought += size(value);
                    merge(self.fields.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        brought
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Takes these fields out of a message.
    pub(super) fn remove(message: &mut Map<String, Value>) {
        for name in FIELDS {
            message.remove(name);
        }
    }

    /// All of them, if there are any.
    pub(super) fn take(&mut self) -> Option<Map<String, Value>> {
        let fields = std::mem::take(&mut self.fields);
        (!fields.is_empty()).then_some(fields)
    }
}

/// The attached fields of a message that is sent: lists of several answers are one list.
pub(super) fn attach(message: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for name in FIELDS {
        match (message.get_mut(name), fields.get(name)) {
            (_, None) => {}
            (Some(Value::Array(before)), Some(Value::Array(more))) => before.extend(more.iter().cloned()),
            (Some(before), Some(more)) => merge(before, more),
            (None, Some(value)) => {
                message.insert(name.to_owned(), value.clone());
            }
        }
    }
}

/// A block of reasoning comes in pieces with one index. Its texts are joined, because the signature of a block, which
/// comes last, is that of the whole.
fn add_detail(list: &mut Vec<Value>, piece: &Value) {
    let is_same = |entry: &&mut Value| {
        piece["index"].is_number() && entry["index"] == piece["index"] && entry["type"] == piece["type"]
    };
    let Some(entry) = list.iter_mut().rev().find(is_same) else {
        if list.len() < MAX_ENTRIES {
            list.push(piece.clone());
        }
        return;
    };
    let (Value::Object(entry), Value::Object(piece)) = (entry, piece) else { return };
    for (name, value) in piece {
        match (entry.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(before)), Value::String(more))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                before.push_str(more);
            }
            _ => {
                entry.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Puts the fields of `more` over those of `into`, objects inside them too.
pub(super) fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (_, Value::Null) => {}
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// About how many bytes a value has.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
    }
}
