//! Says what would happen to a command, and why.

use super::script::Script;
use super::{Approvals, MAX_COMMAND, Outcome, assess, lexer, too_long};

/// What would happen to a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// Whether it would run.
    pub verdict: Verdict,
    /// Why it would not run, or would ask.
    pub reasons: Vec<Reason>,
    /// The programs that it would run, those of inner shells included, each once.
    pub programs: Vec<String>,
}

/// Whether a command would run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Run,
    /// A person is asked.
    Ask,
    /// It never runs.
    Never,
}

impl Verdict {
    /// The verdict's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Run => "run",
            Verdict::Ask => "ask",
            Verdict::Never => "never",
        }
    }
}

/// Why a command does not simply run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    /// Names the reason for programs, and never changes.
    pub key: String,
    /// Names it for people. The command is the subject: "deletes directories with all that is in them".
    pub text: String,
}

/// Says what would happen to a command if the policy allowed the tool. Runs nothing.
pub fn explain(command: &str, approvals: &Approvals) -> Explanation {
    let read = if command.len() > MAX_COMMAND {
        Err(too_long(command))
    } else {
        Script::read(command).map_err(str::to_owned)
    };
    let script = match read {
        Ok(script) => script,
        Err(why) => {
            let reasons = vec![Reason { key: "unchecked".to_owned(), text: why }];
            return Explanation { verdict: Verdict::Never, reasons, programs: Vec::new() };
        }
    };
    let (verdict, findings) = match assess(command, &script, approvals) {
        Outcome::Never(found) => (Verdict::Never, vec![found]),
        Outcome::Ask(found) => (Verdict::Ask, found),
        Outcome::Run => (Verdict::Run, Vec::new()),
    };
    let reason = |found: super::Finding| Reason {
        key: found.key.to_owned(),
        text: found.description.strip_prefix("it ").unwrap_or(found.description).to_owned(),
    };
    Explanation { verdict, reasons: findings.into_iter().map(reason).collect(), programs: programs(&script) }
}

/// The words of a command that is one plain program: no operator, no redirection, nothing that it runs in turn and
/// nothing that only a running shell knows.
pub fn plain_command(command: &str) -> Option<Vec<String>> {
    let script = Script::read(command).ok().filter(|_| command.len() <= MAX_COMMAND)?;
    let [program] = script.commands.as_slice() else { return None };
    let is_known = !program.words.iter().any(|word| lexer::has_unknown(word));
    (script.is_plain() && is_known && !script.unfinished).then(|| {
        let rest = program.arguments().iter().cloned();
        std::iter::once(program.path.clone()).chain(rest).collect()
    })
}

/// The programs of a script. Words of the shell that only steer it are none.
fn programs(script: &Script) -> Vec<String> {
    const STEERING: [&str; 10] = ["", "for", "select", "case", "let", "[", "[[", ":", "function", "in"];
    let mut programs: Vec<String> = Vec::new();
    for command in &script.commands {
        let name = command.name();
        let is_function = script.functions.contains_key(&command.path);
        if !STEERING.contains(&name) && !is_function && !programs.iter().any(|known| known == name) {
            programs.push(name.to_owned());
        }
    }
    programs
}
