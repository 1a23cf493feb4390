//! One program of a command.

use super::flow::Origin;
use super::lexer::UNKNOWN;

/// One program with its arguments.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its name without a path, then its arguments.
    pub(super) words: Vec<String>,
    /// The files that its output goes to.
    pub(super) writes: Vec<String>,
    /// Where the parts of its words come from that only a running shell knows.
    pub(super) within: Origin,
    /// Where the parts of what it runs come from that only a running shell knows.
    pub(super) runs: Origin,
}

impl Simple {
    /// A program by its words, of which the first may be a path.
    pub(super) fn new(mut words: Vec<String>, writes: Vec<String>) -> Self {
        if let Some(first) = words.first_mut() {
            let name = first.replace(UNKNOWN, "");
            *first = name.rsplit('/').next().unwrap_or(&name).to_ascii_lowercase();
        }
        Simple { words, writes, ..Simple::default() }
    }

    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether it has a short option, alone or among others, or a long one.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        self.arguments().iter().any(|word| match word.strip_prefix("--") {
            Some(name) => !long.is_empty() && name.split('=').next() == Some(long),
            None => word.strip_prefix('-').is_some_and(|letters| letters.contains(short)),
        })
    }

    /// The arguments that are no options.
    pub(super) fn operands(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().map(String::as_str).filter(|word| !word.starts_with('-'))
    }
}
