//! One program of a command.

use std::rc::Rc;

use super::Finding;
use super::flow::{Flow, Origin};
use super::lexer::is_unknown;
use super::names;

/// One program with its arguments.
#[derive(Debug, Default, Clone)]
pub(super) struct Simple {
    /// Its name without a path, then its arguments.
    pub(super) words: Vec<String>,
    /// Its name as it was given.
    pub(super) path: String,
    /// The files that its output goes to, or that its own arguments say it writes.
    pub(super) writes: Vec<String>,
    /// The files that it reads because of a redirection or of the code that it runs.
    pub(super) opens: Vec<String>,
    /// The variables that are set for it.
    pub(super) environment: Vec<String>,
    /// The program that runs it, if it is not the shell.
    pub(super) by: Option<String>,
    /// The directory it runs in, if the command changed to one that is known.
    pub(super) directory: Option<String>,
    /// What it reads, as far as the command tells.
    pub(super) input: Option<Rc<Flow>>,
    /// Where the parts of its words come from that only a running shell knows.
    pub(super) within: Origin,
    /// Where the parts of what it runs come from that only a running shell knows.
    pub(super) runs: Origin,
    /// What was found out about it while it was read.
    pub(super) findings: Vec<Finding>,
}

impl Simple {
    /// A program by its words, of which the first may be a path.
    pub(super) fn new(mut words: Vec<String>, writes: Vec<String>) -> Self {
        let path = words.first().cloned().unwrap_or_default();
        if let Some(first) = words.first_mut() {
            let name = path.replace(is_unknown, "");
            // `=rm` is the path of `rm` to zsh, and nothing to other shells.
            let name = name.trim_start_matches('=');
            let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
            // Elsewhere a pattern stands for files of the workspace.
            let fitting = names::fitting(&name).filter(|_| path.starts_with('/'));
            *first = fitting.map_or(name, str::to_owned);
        }
        Simple { words, path, writes, ..Simple::default() }
    }

    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether one of its arguments is this word.
    pub(super) fn says(&self, word: &str) -> bool {
        self.arguments().iter().any(|argument| argument == word)
    }

    /// Whether it has a short option, alone or among others, or a long one.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        self.arguments().iter().take_while(|word| *word != "--").any(|word| match word.strip_prefix("--") {
            Some(name) => self.is_option(name.split('=').next().unwrap_or(name), long),
            None => word.strip_prefix('-').is_some_and(|letters| letters.contains(short)),
        })
    }

    /// Whether a word names a long option. Most programs take a part of the name for it, `rm` a single letter.
    fn is_option(&self, name: &str, long: &str) -> bool {
        let enough = if self.name() == "rm" { 1 } else { 3 };
        !long.is_empty() && (name == long || name.len() >= enough && long.starts_with(name))
    }

    /// The values of an option, given as `-x value`, `-xvalue`, `--name value` or `--name=value`. Letters before the
    /// short one in the same word are options without a value.
    pub(super) fn values(&self, short: char, long: &str) -> Vec<&str> {
        let words = self.arguments();
        let next = |at: usize| words.get(at + 1).map(String::as_str);
        let mut values = Vec::new();
        for (at, word) in words.iter().enumerate() {
            if word == "--" {
                break;
            } else if let Some(name) = word.strip_prefix("--") {
                match name.split_once('=') {
                    Some((name, value)) if self.is_option(name, long) => values.push(value),
                    None if self.is_option(name, long) => values.extend(next(at)),
                    _ => {}
                }
            } else if let Some(letters) = word.strip_prefix('-').filter(|_| short != '\0')
                && let Some((before, value)) = letters.split_once(short)
                && before.chars().all(|letter| letter.is_ascii_alphanumeric())
            {
                if value.is_empty() { values.extend(next(at)) } else { values.push(value) }
            }
        }
        values
    }

    /// The arguments that are no options. Behind `--` there are none.
    pub(super) fn operands(&self) -> impl Iterator<Item = &str> {
        let end = self.arguments().iter().position(|word| word == "--").unwrap_or(usize::MAX);
        let words = self.arguments().iter().map(String::as_str).enumerate();
        words.filter(move |(at, word)| *at > end || *at < end && !word.starts_with('-')).map(|(_, word)| word)
    }

    /// The operand at this place.
    pub(super) fn operand(&self, at: usize) -> &str {
        self.operands().nth(at).unwrap_or_default()
    }
}
