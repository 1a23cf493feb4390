//! Judges shell commands before they run. Pure: it looks at text and nothing else.
//!
//! A command is read the way a shell would read it. What is judged are the programs that would run with their
//! arguments, so that prose in quotes is prose, and a disguised `rm` is `rm`. The rules:
//!
//! 1. `lexer`, `expansion`: quotes, escapes, braces, variables that the command sets, and what inner commands print are
//!    put into the words. What only a running shell knows stands there as unknown.
//! 2. `groups`, `position`, `script`: each program is one entry, with the words of the shell itself (`if`, `{`, …) taken
//!    away, and with what it or the group around it reads.
//! 3. `programs`, `options`: a program that runs another (`sudo`, `xargs`, …) is followed by that one; what a shell is given to run,
//!    as an argument, by a pipe, a here-document or a file that the command writes, is read as a command.
//! 4. `flow`, `printed`, `files`: what `echo` and `printf` print is known, and so is where it goes. Of everything else it
//!    is known where it comes from: whether it was downloaded or decoded.
//! 5. Everything that is read or copied counts against one bound. What is beyond it does not run.
//!
//! It sees through what is written in plain sight, and not through every trick: the sandbox is the wall.

mod assignments;
mod characters;
mod closing;
mod dangerous;
mod documents;
mod escapes;
mod expansion;
mod files;
mod flow;
mod groups;
mod hard;
mod lexer;
mod options;
mod position;
mod printed;
mod programs;
mod scope;
mod script;
mod simple;
mod wildcard;

use std::borrow::Cow;

use petasos_core::event::Danger;

use crate::tool::Risk;
use script::Script;

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
    /// How many times it calls `sudo`.
    pub(crate) sudo_calls: usize,
}

/// Judges a command.
pub(crate) fn judge(command: &str, approvals: &Approvals) -> Judged {
    if command.len() > MAX_COMMAND {
        return unread(&format!(
            "it has {} bytes, and no more than {MAX_COMMAND} are checked",
            command.len()
        ));
    }
    match Script::read(command) {
        Ok(script) => Judged {
            risk: risk(command, &script, approvals),
            sudo_calls: script.commands.iter().filter(|command| command.name() == "sudo").count(),
        },
        Err(why) => unread(why),
    }
}

fn risk(command: &str, script: &Script, approvals: &Approvals) -> Risk {
    if let Some(found) = hard::find(command, script) {
        return forbidden(found.description);
    }
    let shown = command.trim();
    if approvals.deny.iter().any(|pattern| denies(pattern, shown, script)) {
        return forbidden("the configuration denies it (approvals.deny)");
    }
    if approvals.mode == ApprovalMode::Off {
        return Risk::Ordinary;
    }
    let allowed = |pattern: &String| script.is_plain() && wildcard::matches(pattern, shown);
    if approvals.allow.iter().any(allowed) {
        return Risk::Ordinary;
    }
    let found = dangerous::find(command, script).into_iter();
    let found = found.filter(|found| !approvals.allow.iter().any(|allowed| allowed == found.key));
    let dangers = found.map(|found| (found.key.to_owned(), found.description.to_owned()));
    Danger::of(dangers).map_or(Risk::Ordinary, Risk::Dangerous)
}

/// A command that cannot be checked does not run.
fn unread(why: &str) -> Judged {
    let reason =
        format!("This command is not run: {why}. Make it simpler, or put it into a file and run that.");
    Judged { risk: Risk::Forbidden { reason }, sudo_calls: 0 }
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
