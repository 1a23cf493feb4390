//! The groups of a command (`( … )`, `{ …; }`, `if … fi`, loops), and what flows into, through and out of them.

use std::rc::Rc;

use super::flow::{Flow, Origin};
use super::lexer::is_name;

/// Where in a command a program stands.
#[derive(Debug)]
pub(super) struct Groups {
    /// The groups around it, outermost first.
    open: Vec<Group>,
    outermost: Group,
    /// What comes to the next program through a pipe.
    piped: Option<Rc<Flow>>,
    /// What the last program or group prints.
    pub(super) last: Flow,
    /// How many bytes went from a group to the one around.
    copied: usize,
}

#[derive(Debug, Default)]
struct Group {
    /// What ends it.
    end: &'static str,
    /// What its programs read that have nothing else to read.
    reads: Option<Rc<Flow>>,
    /// What it has printed so far.
    printed: Flow,
}

impl Groups {
    pub(super) fn new(reads: Option<Rc<Flow>>) -> Self {
        let outermost = Group { reads, ..Group::default() };
        Groups { open: Vec::new(), outermost, piped: None, last: Flow::default(), copied: 0 }
    }

    /// What the next program reads, unless it is told otherwise.
    pub(super) fn reads(&mut self) -> Option<Rc<Flow>> {
        self.piped.take().or_else(|| self.open.last().unwrap_or(&self.outermost).reads.clone())
    }

    /// What the group reads that begins next, whatever a pipe brings. A file may be read that nobody has looked into.
    pub(super) fn redirect(&mut self, reads: Option<Rc<Flow>>) {
        let file = || Rc::new(Flow { unknown: false, is_file: true, ..Flow::unknown(Origin::default()) });
        self.piped = Some(reads.unwrap_or_else(file));
    }

    /// What all programs read from here on that have nothing else to read: `exec < file`.
    pub(super) fn keep_reading(&mut self, reads: Option<Rc<Flow>>) {
        if reads.is_some() {
            self.open.last_mut().unwrap_or(&mut self.outermost).reads = reads;
        }
    }

    /// How many bytes were copied since this was asked.
    pub(super) fn take_copied(&mut self) -> usize {
        std::mem::take(&mut self.copied)
    }

    /// Takes an operator between two programs into account.
    pub(super) fn operator(&mut self, operator: &str) {
        match operator {
            "|" | "|&" => self.piped = Some(Rc::new(std::mem::take(&mut self.last))),
            "(" => self.enter(")"),
            ")" => self.leave(")"),
            _ => self.print(),
        }
    }

    /// Takes away the words before a program's name that are the shell's own, entering and leaving groups by them.
    /// Returns those that set variables.
    pub(super) fn take_keywords(&mut self, words: &mut Vec<String>) -> Vec<String> {
        let (mut own, mut assignments) = (0, Vec::new());
        while let Some(word) = words.get(own) {
            let after = |count: usize| words.get(own + count).map(String::as_str);
            let mut with_it = 1;
            match word.as_str() {
                "then" | "else" | "elif" | "do" | "!" => {}
                "if" => self.enter("fi"),
                "while" | "until" => self.enter("done"),
                "{" => self.enter("}"),
                "}" | "fi" | "done" | "esac" => self.leave(word),
                "time" if after(1) == Some("-p") => with_it = 2,
                "time" => {}
                // They may have a name.
                "function" | "coproc" if after(2) == Some("{") => with_it = 2,
                "function" | "coproc" => {}
                word if is_assignment(word) => assignments.push(word.to_owned()),
                _ => break,
            }
            own += with_it;
        }
        words.drain(..own.min(words.len()));
        match words.first().map(String::as_str) {
            Some("for" | "select") => self.enter("done"),
            Some("case") => self.enter("esac"),
            _ => {}
        }
        assignments
    }

    /// What the whole command prints.
    pub(super) fn finish(mut self) -> Flow {
        self.print();
        let mut prints = self.outermost.printed;
        self.open.into_iter().for_each(|group| prints.append(group.printed));
        prints
    }

    fn enter(&mut self, end: &'static str) {
        self.print();
        let reads = self.reads();
        self.open.push(Group { end, reads, printed: Flow::default() });
    }

    /// Leaves a group. What ends another, such as the `)` of a `case`, leaves none.
    fn leave(&mut self, end: &str) {
        self.print();
        if let Some(group) = self.open.pop_if(|group| group.end == end) {
            self.copied += group.printed.len();
            self.last = group.printed;
        }
    }

    fn print(&mut self) {
        let last = std::mem::take(&mut self.last);
        self.open.last_mut().unwrap_or(&mut self.outermost).printed.append(last);
    }
}

/// Whether a word sets a variable.
pub(super) fn is_assignment(word: &str) -> bool {
    assignment(word).is_some()
}

/// The name that a word sets, with a `+` if it adds to what is there, and the value.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        is_name(name.split_once('[').filter(|_| name.ends_with(']')).map_or(name, |(name, _)| name))
    })
}
