//! Deleting files.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let recursive = command.has('r', "recursive") || command.has('R', "");
    let by_many = matches!(command.by.as_deref(), Some("xargs" | "parallel"));
    let by_search = matches!(command.by.as_deref(), Some("find" | "fd" | "fdfind"));
    match command.name() {
        "rm" | "srm" | "remove-item" | "ri" if recursive => {
            Some(finding("recursive_delete", "deletes directories with all that is in them"))
        }
        "rimraf" | "remove_directory" | "del-cli" if command.operands().next().is_some() => {
            Some(finding("recursive_delete", "deletes directories with all that is in them"))
        }
        "rm" | "unlink" | "shred" if by_many => {
            Some(finding("bulk_delete", "deletes whatever another command lists"))
        }
        "rm" | "unlink" | "shred" if by_search => {
            Some(finding("find_delete", "deletes all files that a search finds"))
        }
        "rm" | "unlink" if command.operands().any(|path| path.starts_with(['/', '~'])) => {
            Some(finding("delete_absolute_path", "deletes files outside of the working directory"))
        }
        "tar" if command.says("--remove-files") => {
            Some(finding("recursive_delete", "deletes directories with all that is in them"))
        }
        "zip" if command.has('m', "move") && command.has('r', "recurse-paths") => {
            Some(finding("recursive_delete", "deletes directories with all that is in them"))
        }
        "shred" | "srm" | "wipe" | "scrub" => Some(finding("shred", "destroys files for good")),
        "find" if command.says("-delete") => {
            Some(finding("find_delete", "deletes all files that a search finds"))
        }
        "rsync" if command.has('n', "dry-run") => None,
        "rsync" if command.arguments().iter().any(|word| word.starts_with("--delete") || word == "--del") => {
            Some(finding("sync_delete", "deletes files that the source does not have"))
        }
        "trash-empty" => Some(finding("bulk_delete", "deletes whatever another command lists")),
        "journalctl" if command.arguments().iter().any(|word| word.starts_with("--vacuum")) => {
            Some(finding("delete_absolute_path", "deletes files outside of the working directory"))
        }
        "truncate" if command.operands().next().is_some() => {
            Some(finding("truncate_file", "cuts off the content of files"))
        }
        _ => None,
    }
}
