//! Where in a command the next word stands, and what the groups of the command read.

use std::collections::BTreeMap;

use super::groups::is_assignment;

/// Where the next word stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    place: Place,
    /// The groups around: the token that opens each, and what ends it.
    open: Vec<(usize, &'static str)>,
    /// The group that was just closed. A redirection that follows is its own.
    closed: Option<usize>,
    /// By the token that opens a group, the one that it reads. A shell says so only behind the group.
    pub(super) inputs: BTreeMap<usize, usize>,
    /// Whether something was closed that was not open.
    unopened: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Place {
    /// Where a program's name may be.
    #[default]
    Start,
    /// Behind `function` and `coproc`, which may have a name.
    Name,
    Named,
    /// Behind `export` and its like, whose words are assignments.
    Declaration,
    /// Behind `case`, up to the `in` before its first pattern.
    Case,
    /// Where a `case` has a pattern.
    Pattern,
    Arguments,
}

impl Position {
    /// Whether a word here that looks like an assignment is one.
    pub(super) fn takes_assignments(&self) -> bool {
        matches!(self.place, Place::Start | Place::Declaration)
    }

    /// Whether a program's name may be here.
    pub(super) fn is_start(&self) -> bool {
        self.place == Place::Start
    }

    /// Whether a pattern of a `case` is here.
    pub(super) fn is_pattern(&self) -> bool {
        self.place == Place::Pattern
    }

    /// A pattern of a `case` has ended.
    pub(super) fn end_pattern(&mut self) {
        self.place = Place::Start;
    }

    /// How many groups are open.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Whether all that was opened was closed, and the other way round.
    pub(super) fn is_balanced(&self) -> bool {
        self.open.is_empty() && !self.unopened
    }

    pub(super) fn operator(&mut self, token: usize, operator: &str) {
        if operator.contains(['<', '>']) {
            return;
        }
        let in_case = self.open.last().is_some_and(|(_, end)| *end == "esac");
        self.place = if in_case && operator.starts_with(";;") || operator == ";&" {
            Place::Pattern
        } else if self.place == Place::Case {
            Place::Case
        } else {
            Place::Start
        };
        self.closed = None;
        match operator {
            "(" => self.open.push((token, ")")),
            ")" => self.close(")"),
            _ => {}
        }
    }

    /// A word that is no target of a redirection.
    pub(super) fn word(&mut self, token: usize, word: &str) {
        self.closed = None;
        self.place = match (self.place, word) {
            (Place::Start | Place::Name, "if") => self.enter(token, "fi"),
            (Place::Start | Place::Name, "while" | "until") => self.enter(token, "done"),
            (Place::Start | Place::Name | Place::Named, "{") => self.enter(token, "}"),
            (Place::Start, "}" | "fi" | "done" | "esac") => {
                self.close(word);
                Place::Start
            }
            (Place::Start, "for" | "select") => {
                self.enter(token, "done");
                Place::Arguments
            }
            (Place::Start, "case") => {
                self.enter(token, "esac");
                Place::Case
            }
            (Place::Case, "in") => Place::Pattern,
            (Place::Case, _) => Place::Case,
            (Place::Pattern, "esac") => {
                self.close(word);
                Place::Start
            }
            (Place::Pattern, _) => Place::Pattern,
            (Place::Start, "then" | "else" | "elif" | "do" | "!" | "time") => Place::Start,
            (Place::Start, "function" | "coproc") => Place::Name,
            (Place::Start, "export" | "local" | "declare" | "readonly" | "typeset") => Place::Declaration,
            (Place::Start, word) if is_assignment(word) => Place::Start,
            (Place::Name, _) => Place::Named,
            (Place::Declaration, _) => Place::Declaration,
            _ => Place::Arguments,
        };
    }

    /// Something is read: the text of a here-document, a word, or a file.
    pub(super) fn input(&mut self, token: usize) {
        if let Some(group) = self.closed {
            self.inputs.insert(group, token);
        }
    }

    fn enter(&mut self, token: usize, end: &'static str) -> Place {
        self.open.push((token, end));
        Place::Start
    }

    fn close(&mut self, end: &str) {
        self.closed = self.open.pop_if(|(_, expected)| *expected == end).map(|(token, _)| token);
        self.unopened |= self.closed.is_none();
    }
}
