//! What git runs: aliases, pagers, editors and transports that its options and settings name.

use super::Inner;
use crate::commands::finding;
use crate::commands::rules::UNSEEN_CODE;
use crate::commands::simple::Simple;

/// Settings whose value is a command.
fn runs_value(setting: &str) -> bool {
    let setting = setting.to_ascii_lowercase();
    const EXACT: [&str; 11] = [
        "core.fsmonitor",
        "core.pager",
        "core.sshcommand",
        "core.editor",
        "core.askpass",
        "core.gitproxy",
        "sequence.editor",
        "diff.external",
        "gpg.program",
        "uploadpack.packobjectshook",
        "interactive.difffilter",
    ];
    const ENDS: [&str; 8] =
        [".textconv", ".command", ".clean", ".smudge", ".process", ".cmd", ".driver", ".helper"];
    EXACT.contains(&setting.as_str())
        || setting.starts_with("alias.")
        || setting.starts_with("pager.")
        || ENDS.iter().any(|end| setting.ends_with(end))
}

/// Settings that make git run a file at its own time.
fn runs_hooks(setting: &str) -> bool {
    matches!(
        setting.to_ascii_lowercase().as_str(),
        "core.hookspath" | "core.fsmonitor" | "init.templatedir" | "include.path"
    )
}

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let words = simple.arguments();
    for (at, word) in words.iter().enumerate() {
        let next = || words.get(at + 1).map(String::as_str);
        let setting = match word.as_str() {
            "-c" | "--config" => next().and_then(|next| next.split_once('=')),
            "config" => config(words.get(at + 1..).unwrap_or_default()),
            _ => None,
        };
        if let Some((name, value)) = setting {
            let rest = words.get(at + 2..).unwrap_or_default();
            apply(name, value, rest, word == "config", inner);
        }
        match word.split_once('=') {
            Some((
                "--upload-pack" | "--receive-pack" | "--exec" | "--open-files-in-pager" | "--extcmd",
                value,
            )) => {
                inner.script(value);
            }
            _ if matches!(
                word.as_str(),
                "-x" | "--exec" | "--upload-pack" | "--receive-pack" | "--extcmd"
            ) && !simple.says("clean") =>
            {
                inner.script(next().unwrap_or_default());
            }
            _ => {}
        }
        match (word.strip_prefix("-O"), word.as_str()) {
            (Some(pager), _) if simple.says("grep") => inner.script(pager),
            (_, "-u") if simple.says("clone") => inner.script(next().unwrap_or_default()),
            _ => {}
        }
        // The value is a variable, of which nobody knows what is in it.
        let by_variable = word.strip_prefix("--config-env=").and_then(|setting| setting.split_once('='));
        if by_variable.is_some_and(|(name, _)| runs_value(name)) {
            inner.findings.push(UNSEEN_CODE);
        }
        if let Some(command) = word.strip_prefix("ext::") {
            let command = command.replace("% ", " ");
            inner.findings.push(UNSEEN_CODE);
            inner.script(command.trim_start_matches("sh -c "));
        }
    }
    match words.iter().position(|word| word == "foreach") {
        Some(at) if simple.says("submodule") => {
            let rest: Vec<&str> = words
                .get(at + 1..)
                .unwrap_or_default()
                .iter()
                .map(String::as_str)
                .filter(|word| *word != "--recursive")
                .collect();
            inner.script(&rest.join(" "));
        }
        _ => {}
    }
    for filter in ["--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--commit-filter"] {
        let at = words.iter().position(|word| word == filter);
        at.and_then(|at| words.get(at + 1)).into_iter().for_each(|text| inner.script(text));
    }
}

/// The name and the value that `git config` sets.
fn config(words: &[String]) -> Option<(&str, &str)> {
    let mut operands = words.iter().map(String::as_str).filter(|word| !word.starts_with('-'));
    let name = operands.find(|word| word.contains('.'))?;
    Some((name, operands.next()?))
}

/// A setting, for this command with the words that follow, or for good.
fn apply(name: &str, value: &str, rest: &[String], stays: bool, inner: &mut Inner) {
    let lower = name.to_ascii_lowercase();
    if stays && lower.starts_with("filter.") && value.starts_with(['.', '/', '~']) {
        inner.findings.push(finding("git_hook", "changes what git runs by itself"));
    }
    if runs_hooks(name) && !matches!(value, "false" | "true" | "/dev/null" | "") {
        inner.findings.push(finding("git_hook", "changes what git runs by itself"));
    }
    let transport = value.split_whitespace().next().unwrap_or_default();
    if name.eq_ignore_ascii_case("core.sshcommand") && transport.rsplit('/').next() != Some("ssh") {
        inner.findings.push(finding("git_hook", "changes what git runs by itself"));
    }
    if !runs_value(name) {
        return;
    }
    // An alias without a sign, and a helper with a plain name, are commands of git itself.
    let alias = lower.strip_prefix("alias.");
    match value.strip_prefix('!') {
        Some(command) => inner.script(command),
        None if alias.is_some() && !value.is_empty() => {
            let called = rest.iter().position(|word| Some(word.as_str()) == alias).filter(|_| !stays);
            let rest = called.and_then(|at| rest.get(at + 1..)).unwrap_or_default();
            let words = value.split_whitespace().chain(rest.iter().map(String::as_str));
            inner.program(std::iter::once("git").chain(words));
        }
        None if !name.ends_with(".helper") => inner.script(value),
        None => {}
    }
}
