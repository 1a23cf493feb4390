//! The options of a program itself. They end where the words of the program begin that it runs, or its own operands.

use super::groups::is_assignment;
use super::simple::Simple;

/// What the options of a program look like.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The letters of those that have a value.
    pub(super) letters: &'static str,
    /// The long names of those whose value may be the next word.
    pub(super) long: &'static [&'static str],
    /// How many operands it has before the words that matter.
    pub(super) operands: usize,
    /// Where the value is of an option among others.
    pub(super) value: Value,
}

/// Where the value is of a letter among others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// What follows the letter, or the next word if nothing does.
    Attached,
    /// The next word, whatever follows the letter: `bash -oe pipefail`.
    NextWord,
}

impl Shape {
    pub(super) const fn new(letters: &'static str, long: &'static [&'static str]) -> Self {
        Shape { letters, long, operands: 0, value: Value::Attached }
    }

    pub(super) const fn operands(self, operands: usize) -> Self {
        Shape { operands, ..self }
    }
}

/// The options of a program, and the words behind them and its own operands.
#[derive(Default)]
pub(super) struct Options<'a> {
    given: Vec<Given<'a>>,
    pub(super) words: Vec<&'a str>,
}

struct Given<'a> {
    /// Letters with their sign, or a long name.
    name: &'a str,
    value: Option<&'a str>,
}

impl<'a> Options<'a> {
    pub(super) fn of(simple: &'a Simple, shape: Shape) -> Self {
        Options::of_words(simple.name(), simple.arguments(), shape)
    }

    /// The options of a program, or of a command of it, among these words.
    pub(super) fn of_words(program: &str, words: &'a [String], shape: Shape) -> Self {
        let mut options = Options::default();
        let mut words = words.iter().map(String::as_str).peekable();
        let (mut operands, mut ended) = (shape.operands, false);
        while let Some(word) = words.peek().copied() {
            if !ended && is_option(program, word) {
                words.next();
                ended = word == "--" || word == "-" && program != "env";
                let (given, values) = given(word, shape);
                options.given.push(given);
                for _ in 0..values {
                    // What a shell takes as a value is a name. Where it takes none, an option follows.
                    let is_value =
                        |next: &&str| shape.value == Value::Attached || !next.starts_with(['-', '+']);
                    let Some(value) = words.next_if(is_value) else { break };
                    options.given.last_mut().into_iter().for_each(|given| given.value = Some(value));
                }
            } else if sets_variables(program) && is_assignment(word) {
                words.next();
            } else if operands > 0 {
                operands -= 1;
                words.next();
            } else {
                break;
            }
        }
        options.words = words.collect();
        options
    }

    /// Whether an option of one of these letters is given.
    pub(super) fn has(&self, letters: &str) -> bool {
        let short = self.given.iter().filter(|given| !given.name.starts_with("--"));
        short.into_iter().any(|given| given.name.contains(|letter: char| letters.contains(letter)))
    }

    pub(super) fn has_long(&self, name: &str) -> bool {
        self.given.iter().any(|given| given.name.strip_prefix("--") == Some(name))
    }

    /// The last value of an option, by its letter or its long name.
    pub(super) fn value(&self, letter: char, long: &str) -> Option<&'a str> {
        let is_it = |given: &&Given<'_>| match given.name.strip_prefix("--") {
            Some(name) => name == long,
            None => given.name.ends_with(letter),
        };
        self.given.iter().rev().filter(is_it).find_map(|given| given.value)
    }
}

/// One word of options, and how many words after it are values.
fn given(word: &str, shape: Shape) -> (Given<'_>, usize) {
    if let Some(long) = word.strip_prefix("--") {
        return match word.split_once('=') {
            Some((name, value)) => (Given { name, value: Some(value) }, 0),
            None => {
                // A part of the name is enough.
                let has_value = !long.is_empty() && shape.long.iter().any(|name| name.starts_with(long));
                (Given { name: word, value: None }, usize::from(has_value))
            }
        };
    }
    let has_value = |letter: char| shape.letters.contains(letter);
    if shape.value == Value::NextWord {
        return (Given { name: word, value: None }, word.chars().filter(|letter| has_value(*letter)).count());
    }
    match word.split_once(has_value) {
        Some((before, after)) => {
            let name = word.get(..word.len() - after.len()).unwrap_or(before);
            let value = Some(after).filter(|after| !after.is_empty());
            (Given { name, value }, usize::from(value.is_none()))
        }
        None => (Given { name: word, value: None }, 0),
    }
}

/// Whether a word is an option. A sign alone is one for `env` and ends those of a shell; to others it is a file.
fn is_option(program: &str, word: &str) -> bool {
    match word {
        "-" => program == "env" || super::names::is_shell(program),
        _ => word.len() > 1 && word.starts_with(['-', '+']),
    }
}

/// Whether a program takes variables before the program that it runs.
fn sets_variables(program: &str) -> bool {
    matches!(program, "env" | "sudo" | "doas" | "cross-env" | "dotenv" | "busybox")
}
