//! What editors, pagers and debuggers run: `:!…`, `shell …` and their own languages.

use super::code::{self, Language};
use super::{Inner, lisp};
use crate::commands::finding;
use crate::commands::simple::Simple;

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let words = simple.arguments();
    let next = |at: usize| words.get(at + 1).map(String::as_str);
    for (at, word) in words.iter().enumerate() {
        match (simple.name(), word.as_str()) {
            ("gdb", "-ex" | "-iex" | "--eval-command" | "-eval-command" | "--init-eval-command") => {
                debugger_command(next(at).unwrap_or_default(), inner);
            }
            ("emacs", "--eval" | "-eval" | "--execute") => lisp::scan(next(at).unwrap_or_default(), inner),
            ("gdb" | "emacs" | "ed", _) => {
                let command = word.strip_prefix("--eval=").or(word.strip_prefix("--eval-command="));
                command.into_iter().for_each(|command| match simple.name() {
                    "emacs" => lisp::scan(command, inner),
                    _ => debugger_command(command, inner),
                });
            }
            ("less", word) => {
                if let Some(command) = word.strip_prefix("+!") {
                    inner.script(command);
                }
            }
            (_, "--cmd") => editor_command(next(at).unwrap_or_default(), inner),
            (_, word) if word.starts_with('-') && !word.starts_with("--") && word.ends_with('c') => {
                editor_command(next(at).unwrap_or_default(), inner);
            }
            (_, word) => {
                if let Some(command) = word.strip_prefix('+') {
                    editor_command(command, inner);
                }
            }
        }
    }
    if simple.name() == "gdb" && injects(simple) {
        inner.findings.push(crate::commands::rules::UNSEEN_CODE);
    }
    if simple.name() == "gdb" && (simple.has('\0', "args") || simple.says("-args")) {
        let at = words.iter().position(|word| word.ends_with("-args"));
        let program = at.and_then(|at| words.get(at + 1..)).unwrap_or_default();
        inner.program(program.iter().map(String::as_str));
    }
}

/// A command of vi without the words that only say how it is run.
fn unmodified(command: &str) -> &str {
    const MODIFIERS: [&str; 14] = [
        "silent",
        "sil",
        "noautocmd",
        "verbose",
        "keepalt",
        "keepmarks",
        "keepjumps",
        "bufdo",
        "argdo",
        "windo",
        "tabdo",
        "execute",
        "exe",
        "tab",
    ];
    let mut rest = command;
    loop {
        rest = rest.trim_start_matches(|c: char| matches!(c, ':' | '%' | '"' | '\'') || c.is_whitespace());
        let modifier = MODIFIERS.iter().find_map(|modifier| {
            let after = rest.strip_prefix(modifier)?;
            let after = after.strip_prefix('!').unwrap_or(after);
            after.starts_with(char::is_whitespace).then_some(after)
        });
        match modifier {
            Some(after) => rest = after,
            None => return rest,
        }
    }
}

/// A command of vi.
fn editor_command(command: &str, inner: &mut Inner) {
    for part in command.split('|').take(100) {
        let part = unmodified(part);
        let word: String = part.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        let rest = part.get(word.len()..).unwrap_or_default();
        match word.as_str() {
            "" | "r" | "read" | "w" | "write" if rest.trim_start().starts_with('!') => {
                // What a pipe follows belongs to the command.
                let whole = command.find(part).and_then(|at| command.get(at..));
                let text = whole.and_then(|whole| whole.split_once('!')).map_or("", |(_, text)| text);
                inner.script(text);
            }
            "sh" | "shell" | "terminal" | "ter" | "term" => {
                inner.findings.push(finding("shell_escape", "starts a shell that nobody attends"));
            }
            "py" | "python" | "py3" | "python3" | "pyx" => code::scan(Language::Python, rest, &[], inner),
            "lua" => code::scan(Language::Lua, rest, &[], inner),
            "perl" => code::scan(Language::Perl, rest, &[], inner),
            "ruby" => code::scan(Language::Ruby, rest, &[], inner),
            "call" | "echo" | "let" if rest.contains("system(") => {
                code::scan(Language::Other, rest, &[], inner);
            }
            _ => {}
        }
    }
}

/// Code that runs within another process.
fn injects(simple: &Simple) -> bool {
    let calls = |word: &String| word.starts_with("call ") || word.starts_with("print ") && word.contains('(');
    (simple.has('\0', "pid") || simple.says("-p")) && simple.arguments().iter().any(calls)
}

fn debugger_command(command: &str, inner: &mut Inner) {
    let command = command.trim();
    if let Some(text) =
        command.strip_prefix('!').or(command.strip_prefix("shell")).or(command.strip_prefix("make "))
    {
        inner.script(if text.trim().is_empty() { "sh" } else { text });
    } else if let Some(code) = command.strip_prefix("python").or(command.strip_prefix("py ")) {
        code::scan(Language::Python, code, &[], inner);
    } else if let Some(code) = command
        .strip_prefix("call ")
        .or(command.strip_prefix("print "))
        .filter(|code| code.contains("system"))
    {
        code::scan(Language::Other, code, &[], inner);
    }
}

/// Commands that `ed` and `ex` read.
pub(super) fn read_ed(text: &str, inner: &mut Inner) {
    for line in text.lines() {
        let command = line.trim_start_matches([':', ' ']);
        let command = command.strip_prefix("r ").or(command.strip_prefix("w ")).unwrap_or(command);
        if let Some(command) = command.trim_start().strip_prefix('!') {
            inner.script(command);
        }
    }
}

/// Lines of a file that an editor or a debugger runs.
pub(super) fn read_commands(name: &str, text: &str, inner: &mut Inner) {
    for line in text.lines().take(10_000) {
        match name {
            "gdb" => debugger_command(line, inner),
            _ => editor_command(line, inner),
        }
    }
}

/// The file of commands that an editor or a debugger is given: no name if it reads them.
pub(super) fn commands_file(simple: &Simple) -> Option<Option<&str>> {
    match simple.name() {
        "gdb" => match simple.values('x', "command").first() {
            Some(file) => Some(Some(file)),
            None => (!simple.has('\0', "batch")).then_some(None),
        },
        "vim" | "nvim" | "vi" | "gvim" => {
            let files = [simple.values('S', ""), simple.values('u', ""), simple.values('s', "")].concat();
            let file = files.into_iter().find(|file| file.starts_with('/') || file.contains('.'));
            match file {
                Some(file) => Some(Some(file)),
                None => simple.arguments().iter().any(|word| word.starts_with("-e")).then_some(None),
            }
        }
        _ => None,
    }
}
