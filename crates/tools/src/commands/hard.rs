//! Commands that are never run, whoever allows them.

use std::collections::BTreeSet;

use super::programs::wrapper_options;
use super::script::Script;
use super::simple::Simple;
use super::{Finding, finding};

/// Directories that a system cannot do without.
const SYSTEM: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/srv",
    "/sys", "/usr", "/var",
];

/// The first reason not to run it.
pub(super) fn find(text: &str, script: &Script) -> Option<Finding> {
    if is_fork_bomb(text) {
        return Some(finding("fork_bomb", "it is a fork bomb"));
    }
    script.commands.iter().find_map(rule)
}

const DELETE_SYSTEM: Finding = finding("delete_system", "it deletes the system or the home directory");
const OVERWRITE_DISK: Finding = finding("overwrite_disk", "it overwrites a disk");
const FORMAT_DISK: Finding = finding("format_disk", "it formats a disk");
const KILL_ALL: Finding = finding("kill_all", "it ends all processes");
const POWER_OFF: Finding = finding("power_off", "it stops the machine");
const SUDO_STDIN: Finding =
    finding("sudo_stdin", "it gives sudo a password; write sudo alone, and the user is asked for it");

fn rule(command: &Simple) -> Option<Finding> {
    if command.writes.iter().any(|target| is_disk(target)) {
        return Some(OVERWRITE_DISK);
    }
    let (found, finding) = match command.name() {
        "rm" => (deletes_system(command), DELETE_SYSTEM),
        "find" => (finds_and_deletes_system(command), DELETE_SYSTEM),
        "dd" => (
            command.arguments().iter().any(|word| word.strip_prefix("of=").is_some_and(is_disk)),
            OVERWRITE_DISK,
        ),
        "tee" | "cp" | "wipefs" | "shred" => (command.operands().any(is_disk), OVERWRITE_DISK),
        "kill" => (kills_all(command), KILL_ALL),
        "shutdown" | "reboot" | "halt" | "poweroff" => (true, POWER_OFF),
        "init" | "telinit" => (command.operands().any(|level| level == "0" || level == "6"), POWER_OFF),
        "systemctl" => {
            let verbs = ["poweroff", "reboot", "halt", "kexec", "emergency", "rescue"];
            (command.operands().next().is_some_and(|verb| verbs.contains(&verb)), POWER_OFF)
        }
        "sudo" => (sudo_reads_stdin(command), SUDO_STDIN),
        name => (name == "mkfs" || name.starts_with("mkfs."), FORMAT_DISK),
    };
    found.then_some(finding)
}

fn deletes_system(command: &Simple) -> bool {
    let recursive = command.has('r', "recursive") || command.has('R', "");
    recursive && command.operands().any(is_vital)
}

fn finds_and_deletes_system(command: &Simple) -> bool {
    let deletes = |word: &str| matches!(word.rsplit('/').next(), Some("-delete" | "rm" | "unlink" | "shred"));
    let words = || command.arguments().iter().map(String::as_str);
    let mut places = words().skip_while(|word| ["-H", "-L", "-P"].contains(word));
    let vital = places.by_ref().take_while(|word| !word.starts_with('-')).any(is_vital);
    vital && words().any(deletes) && !narrowed(command)
}

/// Options of `sudo` itself, not those of the program that it runs.
fn sudo_reads_stdin(command: &Simple) -> bool {
    wrapper_options(command).is_some_and(|own| own.has("S") || own.has_long("stdin"))
}

/// Whether `find` looks for something in particular.
fn narrowed(command: &Simple) -> bool {
    ["-name", "-iname", "-path", "-mtime", "-newer", "-size"]
        .iter()
        .any(|test| command.arguments().iter().any(|word| word == test))
}

fn kills_all(command: &Simple) -> bool {
    // The first `-1` may be a signal; as the last word it is everybody.
    let arguments = command.arguments();
    arguments.len() >= 2 && arguments.last().is_some_and(|word| word == "-1")
}

/// A path whose loss nobody recovers from.
fn is_vital(path: &str) -> bool {
    if path == "/*" {
        return true;
    }
    let path = path.strip_suffix("/*").or(path.strip_suffix('*')).unwrap_or(path);
    let mut clean = String::from(if path.starts_with('/') { "/" } else { "" });
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part == ".." {
            clean.truncate(clean.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1));
        } else {
            clean.push_str(part);
            clean.push('/');
        }
    }
    let clean = if clean == "/" { "/" } else { clean.trim_end_matches('/') };
    let home_of_somebody = clean.strip_prefix("/home/").is_some_and(|name| !name.contains('/'));
    clean == "/" || clean == "~" || SYSTEM.contains(&clean) || home_of_somebody
}

fn is_disk(path: &str) -> bool {
    let Some(device) = path.strip_prefix("/dev/") else { return false };
    ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "mapper/", "dm-", "md", "loop"]
        .iter()
        .any(|kind| device.starts_with(kind))
}

/// A function that calls itself twice, in a pipe.
fn is_fork_bomb(text: &str) -> bool {
    const ENDS: [char; 9] = [';', '&', '|', '{', '}', '(', ')', '\'', '"'];
    let text: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let before = |at: usize| text.get(..at).and_then(|before| before.rsplit(ENDS).next()).unwrap_or_default();
    let after = |at: usize| text.get(at..).and_then(|after| after.split(ENDS).next()).unwrap_or_default();
    let functions: BTreeSet<&str> =
        text.match_indices("(){").map(|(at, _)| before(at).trim_start_matches("function")).collect();
    let mut pipes = text.match_indices('|').map(|(at, _)| (before(at), after(at + 1)));
    pipes.any(|(first, second)| !first.is_empty() && first == second && functions.contains(first))
}
