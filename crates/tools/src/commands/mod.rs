//! Judges shell commands before they run. Pure: it looks at text and nothing else.
//!
//! A command is read the way a shell would read it. What is judged are the programs that would run with their
//! arguments, so that prose in quotes is prose, and a disguised `rm` is `rm`. The rules:
//!
//! 1. `lexer`, `expansion`, `parameters`, `definitions`: quotes, escapes, braces, variables, arrays and arguments that the
//!    command sets, and what inner commands print are put into the words. What only a running shell knows stands there
//!    as unknown.
//! 2. `groups`, `position`, `script`: each program is one entry, with the words of the shell itself (`if`, `{`, …) taken
//!    away, and with what it or the group around it reads.
//! 3. `programs`, `options`, `environment`: a program that runs another (`sudo`, `xargs`, …) is followed by that one; what
//!    a shell is given to run, as an argument, by a pipe, a here-document or a file that the command writes, is read as a
//!    command. Code of other languages is looked through for the calls that matter, and the arguments of programs that
//!    nobody knows for texts that begin like a command which destroys something.
//! 4. `flow`, `printed`, `decoding`, `files`, `searches`: what `echo` and `printf` print is known, and so is where it goes. Of
//!    everything else it is known where it comes from: whether it was downloaded or decoded.
//! 5. `hard`, `rules`: what never runs, and one file for each family that asks. A program of which nobody knows the name,
//!    and code that nobody can see, ask.
//! 6. Everything that is read or copied counts against one bound. What is beyond it does not run. What cannot be read
//!    because a quote or a bracket has no end asks.
//!
//! It sees through what is written in plain sight, and not through every trick: the sandbox is the wall.
//!
//! The table of expectations (`expectations/`) holds the rules, and `bash -n` holds the reader.
//!
//! The reader is our own by measurement, over 3,397 commands (the table, and 25 forms of the shell around 60 plain commands
//! of it that this reader reads) held against `bash -n`. It agreed with bash on all of them, at 26 µs a command with all
//! rules (optimised, one run on a busy machine). rable 0.2.2 agreed as well (6 µs, parsing alone), but took 1.5 s for 100
//! nested `$(` and overflowed the stack at 5,000; this reader refuses both as too deep, within 14 ms. brush-parser 0.4.0
//! (19 µs, parsing alone; 75 dependencies in all) refused 61 commands that bash reads, nearly all for `select`. Words have
//! to be expanded here in any case, which neither does for us.

mod assignments;
mod characters;
mod closing;
mod decoding;
mod definitions;
mod documents;
mod environment;
mod escapes;
mod expansion;
mod explain;
mod files;
mod flow;
mod groups;
mod hard;
mod lexer;
mod names;
mod options;
mod parameters;
mod paths;
pub(crate) mod patterns;
mod position;
mod printed;
mod programs;
mod rules;
mod scope;
mod script;
mod searches;
mod simple;
mod sudo;
mod wildcard;

pub use explain::{Explanation, Reason, Verdict, explain, plain_command};

use std::borrow::Cow;

use petasos_core::event::Danger;

use crate::tool::Risk;
use script::Script;
pub(crate) use sudo::SudoCalls;

/// What the configuration says about commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approvals {
    /// Whether dangerous commands ask.
    pub mode: ApprovalMode,
    /// Commands that never run. `*` stands for anything.
    pub deny: Vec<String>,
    /// Commands that are not dangerous here, and keys of patterns that are not. `*` stands for anything.
    pub allow: Vec<String>,
}

/// Whether dangerous commands ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// They do.
    #[default]
    Manual,
    /// They do not. Commands on the hard list are refused all the same.
    Off,
}

/// What was found in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Finding {
    key: &'static str,
    description: &'static str,
}

const fn finding(key: &'static str, description: &'static str) -> Finding {
    Finding { key, description }
}

/// The longest command that is looked at.
const MAX_COMMAND: usize = 100_000;

/// What there is to know about a command before it runs.
pub(crate) struct Judged {
    /// Whether it may run.
    pub(crate) risk: Risk,
    /// The calls of `sudo` in it.
    pub(crate) sudo_calls: SudoCalls,
}

/// Judges a command.
pub(crate) fn judge(command: &str, approvals: &Approvals) -> Judged {
    if command.len() > MAX_COMMAND {
        return unread(&too_long(command));
    }
    match Script::read(command) {
        Ok(script) => Judged {
            risk: risk(assess(command, &script, approvals)),
            sudo_calls: SudoCalls::of(&script.commands),
        },
        Err(why) => unread(why),
    }
}

/// Judges what is written to a program that runs. A shell may read it, but also the rest of a line before or after.
pub(crate) fn judge_input(data: &str, approvals: &Approvals) -> Judged {
    let may_end_later = Approvals {
        allow: approvals.allow.iter().cloned().chain(["unreadable".to_owned()]).collect(),
        ..approvals.clone()
    };
    judge(data, &may_end_later)
}

/// Judges a Python script as if a command gave it to `python3 -c`. A script that is too long to be read asks.
pub(crate) fn judge_python(code: &str, approvals: &Approvals) -> Risk {
    let command = format!("python3 -c '{}'", code.replace('\'', "'\\''"));
    if command.len() <= MAX_COMMAND {
        return judge(&command, approvals).risk;
    }
    let asks = approvals.mode == ApprovalMode::Manual
        && !approvals.allow.iter().any(|allowed| allowed == rules::UNSEEN_CODE.key);
    risk(if asks { Outcome::Ask(vec![rules::UNSEEN_CODE]) } else { Outcome::Run })
}

fn too_long(command: &str) -> String {
    format!("it has {} bytes, and no more than {MAX_COMMAND} are checked", command.len())
}

/// What happens to a command.
enum Outcome {
    Run,
    Ask(Vec<Finding>),
    Never(Finding),
}

fn assess(command: &str, script: &Script, approvals: &Approvals) -> Outcome {
    if let Some(found) = hard::find(command, script) {
        return Outcome::Never(found);
    }
    let shown = command.trim();
    if approvals.deny.iter().any(|pattern| denies(pattern, shown, script)) {
        return Outcome::Never(finding("denied", "the configuration denies it (approvals.deny)"));
    }
    if approvals.mode == ApprovalMode::Off {
        return Outcome::Run;
    }
    let allowed = |pattern: &String| script.is_plain() && wildcard::matches(pattern, shown);
    if approvals.allow.iter().any(allowed) {
        return Outcome::Run;
    }
    let mut found = rules::find(script);
    found.retain(|found| !approvals.allow.iter().any(|allowed| allowed == found.key));
    if found.is_empty() { Outcome::Run } else { Outcome::Ask(found) }
}

fn risk(outcome: Outcome) -> Risk {
    match outcome {
        Outcome::Run => Risk::Ordinary,
        Outcome::Never(found) => forbidden(found.description),
        Outcome::Ask(found) => {
            let dangers = found.iter().map(|found| (found.key.to_owned(), found.description.to_owned()));
            Danger::of(dangers).map_or(Risk::Ordinary, Risk::Dangerous)
        }
    }
}

/// A command that cannot be checked does not run.
fn unread(why: &str) -> Judged {
    let reason =
        format!("This command is not run: {why}. Make it simpler, or put it into a file and run that.");
    Judged { risk: Risk::Forbidden { reason }, sudo_calls: SudoCalls::default() }
}

/// Whether a pattern denies the command as it is written, or any program that it would run.
fn denies(pattern: &str, shown: &str, script: &Script) -> bool {
    let runs = script.commands.iter().map(|command| Cow::Owned(command.words.join(" ")));
    std::iter::once(Cow::Borrowed(shown)).chain(runs).any(|text| wildcard::matches(pattern, &text))
}

fn forbidden(why: &str) -> Risk {
    let reason =
        format!("This command is never run: {why}. Do not try it in other words; tell the user instead.");
    Risk::Forbidden { reason }
}

#[cfg(test)]
mod tests;
