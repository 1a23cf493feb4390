//! Changing who may use files.

use crate::commands::simple::Simple;
use crate::commands::{Finding, finding};

const WORLD_WRITABLE: Finding = finding("world_writable", "lets everybody write to files");
const SETUID: Finding = finding("setuid", "lets a program run as its owner");
const RECURSIVE_CHMOD: Finding = finding("recursive_chmod", "changes the permissions of many files");
const RECURSIVE_CHOWN: Finding = finding("recursive_chown", "changes the owner of whole directories");

pub(super) fn rule(command: &Simple) -> Option<Finding> {
    let many = matches!(command.by.as_deref(), Some("find" | "xargs" | "fd" | "parallel"))
        || command.has('R', "recursive")
        || command.operands().skip(1).any(is_whole_directory);
    match command.name() {
        _ if command.has('\0', "help") => None,
        "chmod" => {
            // What takes a permission away begins like an option: `chmod -w file`.
            let mode = command.operands().next().unwrap_or_default();
            of_mode(mode).or(many.then_some(RECURSIVE_CHMOD))
        }
        "mkdir" | "install" => command.values('m', "mode").into_iter().find_map(of_mode),
        "umask" if command.operands().next().is_some_and(opens_mask) => Some(WORLD_WRITABLE),
        "icacls" if command.arguments().iter().any(|word| word.starts_with("Everyone:")) => {
            Some(WORLD_WRITABLE)
        }
        "chown" | "chgrp" if many => Some(RECURSIVE_CHOWN),
        "chattr" | "setfacl" | "setcap" => {
            Some(finding("file_attributes", "changes what files may be used for"))
        }
        _ => None,
    }
}

/// Whether a word stands for everything in a directory.
fn is_whole_directory(word: &str) -> bool {
    matches!(word, "*" | "./*" | "/*" | "~/*") || word.contains("**")
}

fn opens_mask(mask: &str) -> bool {
    mask.chars().all(|digit| digit.is_digit(8)) && mask.ends_with(['0', '1', '4', '5'])
}

/// What is dangerous about a mode, as a number or in letters.
fn of_mode(mode: &str) -> Option<Finding> {
    if !mode.is_empty() && mode.chars().all(|digit| digit.is_digit(8)) {
        let special = mode.len() >= 4 && !mode.starts_with(['0', '1']);
        return if mode.ends_with(['2', '3', '6', '7']) {
            Some(WORLD_WRITABLE)
        } else {
            special.then_some(SETUID)
        };
    }
    let mut found = None;
    for clause in mode.split(',') {
        let Some(at) = clause.find(['+', '=']) else { continue };
        let (who, rights) = clause.split_at(at);
        let everybody = who.is_empty() && rights.starts_with('+') || who.contains(['o', 'a']);
        if everybody && rights.contains('w') {
            return Some(WORLD_WRITABLE);
        } else if rights.contains('s') {
            found = Some(SETUID);
        }
    }
    found
}
