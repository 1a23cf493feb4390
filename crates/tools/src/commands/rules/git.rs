//! Work and history that git would lose.

use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    if command.name() == "bfg" {
        return Some(finding("git_rewrite", "rewrites history"));
    } else if matches!(command.name(), "hg" | "jj" | "svn") {
        return of_others(command);
    } else if command.name() != "git" {
        return None;
    }
    let shape = Shape::new("Cc", &["git-dir", "work-tree", "namespace", "exec-path"]);
    let words = Options::of(command, shape).words;
    let (verb, rest) = words.split_first()?;
    let has = |word: &str| rest.contains(&word);
    let short = |letter: char| {
        rest.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(letter))
    };
    let operands = || rest.iter().filter(|word| !word.starts_with('-'));
    let discards = match *verb {
        "reset" => has("--hard") || has("--merge"),
        "clean" => (short('f') || has("--force")) && !short('n') && !has("--dry-run"),
        "branch" => short('D') || (has("--delete") || short('d')) && (has("--force") || short('f')),
        "stash" => has("clear") || has("drop"),
        "checkout" => {
            has("--") && rest.last() != Some(&"--") || has(".") || short('f') || has("--force") || has(":/")
        }
        "restore" => has("--worktree") || short('W') || !has("--staged") && !short('S'),
        "switch" => short('f') || has("--force") || has("--discard-changes"),
        "reflog" => has("expire") || has("delete"),
        "gc" => rest.iter().any(|word| word.starts_with("--prune=")),
        "prune" => !short('n'),
        "update-ref" => short('d'),
        "read-tree" => has("--reset"),
        "rm" => short('r') && (short('f') || has("--force")) && !has("--cached"),
        "worktree" => has("remove") && (has("--force") || short('f')),
        "submodule" => has("deinit") && (has("--force") || short('f')),
        _ => false,
    };
    let pushes = matches!(*verb, "push" | "send-pack") && !has("--dry-run") && !short('n');
    let forces = short('f') || has("--mirror") || rest.iter().any(|word| word.starts_with("--force"));
    if discards {
        Some(finding("git_discard", "throws away work that git does not bring back"))
    } else if pushes && (forces || operands().any(|word| word.starts_with('+'))) {
        Some(finding("git_force_push", "rewrites history that others have"))
    } else if pushes
        && (short('d') || has("--delete") || has("--prune") || operands().any(|word| word.starts_with(':')))
    {
        Some(finding("git_delete_remote", "deletes branches that others have"))
    } else if matches!(*verb, "filter-branch" | "filter-repo")
        || *verb == "replace" && !short('l') && !has("--list") && !rest.is_empty()
    {
        Some(finding("git_rewrite", "rewrites history"))
    } else {
        None
    }
}

/// Other programs that keep versions.
fn of_others(command: &Simple) -> Option<Finding> {
    let verb = command.operand(0);
    let has = |short: char, long: &str| command.has(short, long);
    let discards = match (command.name(), verb) {
        ("hg", "update" | "up" | "checkout" | "co") => has('C', "clean"),
        ("hg", "revert") => has('a', "all"),
        ("hg", "strip" | "purge" | "rollback") => true,
        ("svn", "revert") => has('R', "recursive"),
        ("svn", "cleanup") => has('\0', "remove-unversioned"),
        _ => false,
    };
    if discards {
        Some(finding("git_discard", "throws away work that git does not bring back"))
    } else if command.name() == "hg" && verb == "push" && has('f', "force") {
        Some(finding("git_force_push", "rewrites history that others have"))
    } else if command.name() == "jj" && command.says("push") && has('\0', "deleted") {
        Some(finding("git_delete_remote", "deletes branches that others have"))
    } else {
        None
    }
}
