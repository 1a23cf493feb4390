//! Judges shell commands before they run. Pure: it looks at text and nothing else.
//!
//! A command is read the way a shell would read it: quotes, escapes and simple expansions are resolved, and what is
//! passed on to another shell is read as well. What is judged are the programs that would run with their arguments,
//! so that prose in quotes is prose, and a disguised `rm` is `rm`.

mod dangerous;
mod hard;
mod lexer;
mod script;
mod sudo;
mod wildcard;

use std::borrow::Cow;

use crate::tool::Risk;
use script::Script;

pub(crate) use sudo::calls as sudo_calls;

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
pub(crate) fn judge(command: &str, approvals: &Approvals) -> Risk {
    if command.len() > MAX_COMMAND {
        let reason = format!(
            "The command has {} bytes, more than can be checked ({MAX_COMMAND}). Put it into a file and run that.",
            command.len()
        );
        return Risk::Forbidden { reason };
    }
    let Some(script) = Script::read(command) else {
        return forbidden("it passes commands on to other shells too often to be checked");
    };
    if let Some(found) = hard::find(command, &script) {
        return forbidden(found.description);
    }
    let shown = command.trim();
    if approvals.deny.iter().any(|pattern| denies(pattern, shown, &script)) {
        return forbidden("the configuration denies it (approvals.deny)");
    }
    if approvals.mode == ApprovalMode::Off {
        return Risk::Ordinary;
    }
    let allowed = |pattern: &String| script.is_plain() && wildcard::matches(pattern, shown);
    if approvals.allow.iter().any(allowed) {
        return Risk::Ordinary;
    }
    let found = dangerous::find(command, &script);
    match found.into_iter().find(|found| !approvals.allow.iter().any(|allowed| allowed == found.key)) {
        Some(found) => {
            Risk::Dangerous { pattern_key: found.key.to_owned(), description: found.description.to_owned() }
        }
        None => Risk::Ordinary,
    }
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
