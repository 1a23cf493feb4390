//! What `make` runs of the rules that it is given.

use super::Inner;
use crate::commands::files::Files;
use crate::commands::simple::Simple;

pub(super) fn run_by(simple: &Simple, files: &Files, inner: &mut Inner) {
    for rules in simple.values('E', "eval") {
        read(rules, inner);
    }
    for name in ["makefile", "GNUmakefile"] {
        if let Some(file) = files.get(name).filter(|file| !file.is_all_unknown()) {
            read(&file.text, inner);
        }
    }
    for word in simple.operands() {
        if let Some(shell) = word.strip_prefix("SHELL=") {
            let is_plain = !shell.contains(char::is_whitespace);
            if !is_plain {
                inner.script(shell);
            }
        } else if word.contains("$(shell") {
            shell_functions(word, inner);
        }
    }
}

/// The recipes of a makefile, and the commands of `$(shell …)`.
pub(super) fn read(text: &str, inner: &mut Inner) {
    let text = text.replace("\\\n", " ");
    let mut script = String::new();
    for line in text.lines() {
        let recipe = match line.strip_prefix('\t') {
            Some(recipe) => Some(recipe),
            None => line.split_once(';').filter(|(rule, _)| rule.contains(':')).map(|(_, recipe)| recipe),
        };
        if let Some(recipe) = recipe {
            script.push_str(recipe.trim_start_matches(['@', '-', '+', ' ']));
            script.push('\n');
        }
    }
    inner.script(&script.replace("$$", "$"));
    shell_functions(&text, inner);
}

fn shell_functions(text: &str, inner: &mut Inner) {
    for part in text.split("$(shell").skip(1).take(100) {
        let mut depth = 1;
        let end = part.find(|character| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        inner.script(part.get(..end.unwrap_or(part.len())).unwrap_or_default());
    }
}
