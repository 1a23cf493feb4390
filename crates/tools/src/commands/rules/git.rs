//! Work and history that git would lose.

use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    if command.name() == "bfg" {
        return Some(finding("git_rewrite", "rewrites history"));
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
    let pushes = *verb == "push" && !has("--dry-run") && !short('n');
    let forces = short('f') || has("--mirror") || rest.iter().any(|word| word.starts_with("--force"));
    if discards {
        Some(finding("git_discard", "throws away work that git does not bring back"))
    } else if pushes && (forces || operands().any(|word| word.starts_with('+'))) {
        Some(finding("git_force_push", "rewrites history that others have"))
    } else if pushes
        && (short('d') || has("--delete") || has("--prune") || operands().any(|word| word.starts_with(':')))
    {
        Some(finding("git_delete_remote", "deletes branches that others have"))
    } else if matches!(*verb, "filter-branch" | "filter-repo") {
        Some(finding("git_rewrite", "rewrites history"))
    } else {
        None
    }
}
