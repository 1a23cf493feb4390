//! Collects the parts of an answer while they arrive.

use petasos_core::model::{Answer, AnswerPart, Opaque, Stop, Usage};

use super::Problem;

/// More parts than any real answer has, so that a broken provider cannot fill the memory with empty ones.
const MAX_PARTS: usize = 1024;

/// The most bytes of one call's arguments that are kept: more than any tool takes, so that whoever carries out calls
/// refuses this one and the model hears why.
const MAX_ARGUMENTS: usize = 1_100_000;
/// The most bytes of arguments that are read and not kept.
const MAX_DROPPED: usize = 64 * 1024 * 1024;

/// The parts so far. Each has a key of the format's choice, since parts may arrive interleaved.
#[derive(Debug, Default)]
pub(super) struct Parts {
    entries: Vec<(u64, AnswerPart)>,
    size: usize,
    /// Bytes of arguments that were not kept.
    dropped: usize,
}

impl Parts {
    /// Appends to the text with this key.
    pub(super) fn text(&mut self, key: u64, piece: &str) -> Result<(), Problem> {
        match self.entry(key, || AnswerPart::Text(String::new()))? {
            AnswerPart::Text(text) => text.push_str(piece),
            other => return Err(wrong_kind("text", other)),
        }
        self.size += piece.chars().count();
        Ok(())
    }

    /// Appends to the reasoning with this key.
    pub(super) fn thinking(&mut self, key: u64, piece: &str) -> Result<(), Problem> {
        match self.entry(key, || AnswerPart::Thinking { text: String::new(), opaque: None })? {
            AnswerPart::Thinking { text, .. } => text.push_str(piece),
            other => return Err(wrong_kind("reasoning", other)),
        }
        self.size += piece.chars().count();
        Ok(())
    }

    /// Keeps what the provider wants back with the reasoning or the call of this key.
    pub(super) fn opaque(&mut self, key: u64, kept: Opaque) -> Result<(), Problem> {
        match self.entry(key, || AnswerPart::Thinking { text: String::new(), opaque: None })? {
            AnswerPart::Thinking { opaque, .. } | AnswerPart::ToolCall { opaque, .. } => *opaque = Some(kept),
            other @ AnswerPart::Text(_) => return Err(wrong_kind("reasoning", other)),
        }
        Ok(())
    }

    /// Appends to the tool call with this key; both pieces may be empty.
    pub(super) fn call(&mut self, key: u64, name_piece: &str, piece: &str) -> Result<(), Problem> {
        let empty = || AnswerPart::ToolCall { name: String::new(), arguments: String::new(), opaque: None };
        let (added, kept) = match self.entry(key, empty)? {
            AnswerPart::ToolCall { name, arguments, .. } => {
                let added = append_name(name, name_piece, !arguments.is_empty());
                let kept = cut(piece, MAX_ARGUMENTS.saturating_sub(arguments.len()));
                arguments.push_str(kept);
                (added, kept)
            }
            other => return Err(wrong_kind("a tool call", other)),
        };
        self.size += added + kept.chars().count();
        self.dropped += piece.len() - kept.len();
        if self.dropped > MAX_DROPPED {
            return Err(Problem::Malformed("the arguments of a tool call do not end".to_owned()));
        }
        Ok(())
    }

    /// Keeps what the provider wants back with the reasoning of this key, unless something is kept already.
    pub(super) fn opaque_if_none(&mut self, key: u64, kept: impl FnOnce() -> Opaque) -> Result<(), Problem> {
        match self.get(key) {
            Some(AnswerPart::Thinking { opaque: Some(_), .. }) => Ok(()),
            _ => self.opaque(key, kept()),
        }
    }

    /// Puts reasoning that nobody can read in front of everything.
    pub(super) fn lead_with(&mut self, kept: Opaque) {
        // No format gives out this key.
        self.entries.insert(0, (u64::MAX, AnswerPart::Thinking { text: String::new(), opaque: Some(kept) }));
    }

    /// Keeps what the provider wants back with the tool call of this key.
    pub(super) fn call_opaque(&mut self, key: u64, kept: Opaque) {
        let entry = self.entries.iter_mut().find(|(of, _)| *of == key);
        if let Some((_, AnswerPart::ToolCall { opaque, .. })) = entry {
            *opaque = Some(kept);
        }
    }

    /// The name and the arguments so far of the tool call with this key.
    pub(super) fn call_so_far(&self, key: u64) -> Option<(&str, &str)> {
        match self.get(key)? {
            AnswerPart::ToolCall { name, arguments, .. } => Some((name, arguments)),
            AnswerPart::Text(_) | AnswerPart::Thinking { .. } => None,
        }
    }

    /// The arguments so far of all tool calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().filter_map(|(_, part)| match part {
            AnswerPart::ToolCall { arguments, .. } => Some(arguments.as_str()),
            AnswerPart::Text(_) | AnswerPart::Thinking { .. } => None,
        })
    }

    /// All text so far.
    pub(super) fn said(&self) -> String {
        let texts = self.entries.iter().filter_map(|(_, part)| match part {
            AnswerPart::Text(text) => Some(text.as_str()),
            AnswerPart::Thinking { .. } | AnswerPart::ToolCall { .. } => None,
        });
        texts.collect()
    }

    /// Counts what is kept for the provider as part of the answer.
    pub(super) fn grow(&mut self, bytes: usize) {
        self.size += bytes;
    }

    /// Replaces the arguments of the tool call with this key by the provider's final text.
    pub(super) fn final_arguments(&mut self, key: u64, whole: &str) -> Result<(), Problem> {
        self.call(key, "", "")?;
        let entry = self.entries.iter_mut().find(|(of, _)| *of == key);
        if let Some((_, AnswerPart::ToolCall { arguments, .. })) = entry {
            let whole = cut(whole, MAX_ARGUMENTS);
            self.size += whole.chars().count().saturating_sub(arguments.chars().count());
            whole.clone_into(arguments);
        }
        Ok(())
    }

    /// The part with this key.
    pub(super) fn get(&self, key: u64) -> Option<&AnswerPart> {
        self.entries.iter().find(|(of, _)| *of == key).map(|(_, part)| part)
    }

    /// Whether a tool is called.
    pub(super) fn has_calls(&self) -> bool {
        self.entries.iter().any(|(_, part)| matches!(part, AnswerPart::ToolCall { .. }))
    }

    /// Characters so far.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The finished answer: empty parts are gone and neighbours of one kind are joined. Reasoning that the
    /// provider wants back stays apart, since it is only accepted as it was.
    pub(super) fn finish(&mut self, usage: Usage, stop: Stop) -> Result<Answer, Problem> {
        let mut parts: Vec<AnswerPart> = Vec::new();
        for (_, part) in std::mem::take(&mut self.entries) {
            match (part, parts.last_mut()) {
                (AnswerPart::Text(text), _) if text.is_empty() => {}
                (AnswerPart::Thinking { text, opaque: None }, _) if text.is_empty() => {}
                (AnswerPart::ToolCall { name, .. }, _) if name.is_empty() => {
                    return Err(Problem::Malformed("a tool call has no name".to_owned()));
                }
                (AnswerPart::Text(more), Some(AnswerPart::Text(text))) => text.push_str(&more),
                (
                    AnswerPart::Thinking { text: more, opaque: None },
                    Some(AnswerPart::Thinking { text, opaque: None }),
                ) => text.push_str(&more),
                (part, _) => parts.push(part),
            }
        }
        Ok(Answer { parts, usage, stop, left_out: Vec::new() })
    }

    fn entry(&mut self, key: u64, empty: impl FnOnce() -> AnswerPart) -> Result<&mut AnswerPart, Problem> {
        let index = match self.entries.iter().position(|(of, _)| *of == key) {
            Some(index) => index,
            None if self.entries.len() < MAX_PARTS => {
                self.entries.push((key, empty()));
                self.entries.len() - 1
            }
            None => return Err(Problem::Malformed(format!("the answer has more than {MAX_PARTS} parts"))),
        };
        Ok(&mut self.entries[index].1)
    }
}

/// Appends a piece of a tool's name, and returns by how many characters it grew. Some servers repeat the name, or what
/// there is of it, in each piece.
fn append_name(name: &mut String, piece: &str, has_arguments: bool) -> usize {
    let before = name.chars().count();
    if piece.starts_with(name.as_str()) {
        piece.clone_into(name);
    } else if !has_arguments {
        name.push_str(piece);
    }
    name.chars().count() - before
}

/// The beginning of a text, of at most so many bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn wrong_kind(wanted: &str, part: &AnswerPart) -> Problem {
    let found = match part {
        AnswerPart::Thinking { .. } => "reasoning",
        AnswerPart::Text(_) => "text",
        AnswerPart::ToolCall { .. } => "a tool call",
    };
    Problem::Malformed(format!("{wanted} came under the index of {found}"))
}
