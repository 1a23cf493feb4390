//! Commands that are never run, whoever allows them.

use std::collections::BTreeSet;

use super::paths::{is_disk, is_vital};
use super::printed;
use super::programs::wrapper_options;
use super::script::Script;
use super::searches;
use super::simple::Simple;
use super::{Finding, finding};

/// The first reason not to run it.
pub(super) fn find(text: &str, script: &Script) -> Option<Finding> {
    if is_fork_bomb(text) || script.functions.iter().any(|(name, body)| starts_itself(name, body)) {
        return Some(FORK_BOMB);
    }
    script.commands.iter().find_map(rule)
}

/// A program that starts itself again and again.
pub(super) const FORK_BOMB: Finding = finding("fork_bomb", "it is a fork bomb");
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
    if command.findings.contains(&FORK_BOMB) {
        return Some(FORK_BOMB);
    }
    if triggers_sysrq(command) {
        return Some(POWER_OFF);
    }
    let disk = || command.operands().any(is_disk);
    let says = |words: &[&str]| command.operands().any(|word| words.contains(&word));
    let (found, finding) = match command.name() {
        "rm" | "srm" | "rimraf" | "remove_directory" | "wipe" | "remove-item" | "ri" | "del-cli" => {
            (deletes_system(command), DELETE_SYSTEM)
        }
        "fd" | "fdfind" => (searches_and_deletes_system(command), DELETE_SYSTEM),
        "find" | "gfind" => (finds_and_deletes_system(command), DELETE_SYSTEM),
        "mv" if command.operands().last().is_some_and(is_disk) => (true, OVERWRITE_DISK),
        "mv" => (moves_system(command), DELETE_SYSTEM),
        "rsync" => (syncs_over_system(command), DELETE_SYSTEM),
        "dd" | "dcfldd" | "dc3dd" => (
            command.arguments().iter().any(|word| word.strip_prefix("of=").is_some_and(is_disk)),
            OVERWRITE_DISK,
        ),
        "tee" | "cp" | "wipefs" | "shred" | "install" | "ddrescue" | "truncate" | "blkdiscard" | "sponge" => {
            (disk(), OVERWRITE_DISK)
        }
        "badblocks" => (command.has('w', "") && disk(), OVERWRITE_DISK),
        "sgdisk" => (
            disk() && (command.has('Z', "zap-all") || command.has('z', "zap") || command.has('o', "clear")),
            OVERWRITE_DISK,
        ),
        "sfdisk" => (disk() && command.has('\0', "delete"), OVERWRITE_DISK),
        "cryptsetup" => (says(&["luksFormat", "luksErase", "erase", "reencrypt"]), FORMAT_DISK),
        "hdparm" => (
            command
                .arguments()
                .iter()
                .any(|word| word.starts_with("--security-erase") || word.starts_with("--trim-sector")),
            FORMAT_DISK,
        ),
        "nvme" => (says(&["format", "sanitize"]), FORMAT_DISK),
        "diskutil" => (
            command.operands().any(|verb| {
                verb.to_ascii_lowercase().starts_with("erase")
                    || verb == "zeroDisk"
                    || verb == "partitionDisk"
            }),
            FORMAT_DISK,
        ),
        "kill" => (kills_all(command), KILL_ALL),
        "killall5" => (true, KILL_ALL),
        "pkill" => (says(&[".", ".*", "", "^"]), KILL_ALL),
        "mkswap" => (disk(), FORMAT_DISK),
        "stop-computer" | "restart-computer" => (true, POWER_OFF),
        "format-volume" | "clear-disk" | "initialize-disk" => (true, FORMAT_DISK),
        "shutdown" | "reboot" | "halt" | "poweroff" | "pm-hibernate" | "openrc-shutdown" => {
            (!asks_for_help(command), POWER_OFF)
        }
        "init" | "telinit" => (says(&["0", "1", "6", "s", "S", "single"]), POWER_OFF),
        "systemctl" | "loginctl" => (stops_machine(command), POWER_OFF),
        "kexec" => (command.has('e', "exec"), POWER_OFF),
        "dbus-send" | "busctl" | "gdbus" => (
            command.arguments().iter().any(|word| {
                let verb = word.rsplit('.').next().unwrap_or(word);
                matches!(verb, "PowerOff" | "Reboot" | "Halt")
            }),
            POWER_OFF,
        ),
        "ipmitool" => (says(&["power"]) && says(&["off", "cycle", "reset", "soft"]), POWER_OFF),
        "sudo" => (sudo_reads_stdin(command), SUDO_STDIN),
        name => (is_formatter(name) && !asks_for_help(command), FORMAT_DISK),
    };
    found.then_some(finding)
}

fn is_formatter(name: &str) -> bool {
    name == "mkfs"
        || name.starts_with("mkfs.")
        || matches!(name, "mke2fs" | "mkntfs" | "mkdosfs" | "newfs" | "mkreiserfs")
}

fn asks_for_help(command: &Simple) -> bool {
    !command.arguments().is_empty()
        && command
            .arguments()
            .iter()
            .all(|word| matches!(word.as_str(), "--help" | "--version" | "-V" | "-h"))
        && command.arguments().iter().all(|word| word != "-h")
}

fn stops_machine(command: &Simple) -> bool {
    const VERBS: [&str; 7] = ["poweroff", "reboot", "halt", "kexec", "emergency", "rescue", "soft-reboot"];
    let target = |word: &str| {
        let name = word.strip_suffix(".target");
        name.is_some_and(|name| {
            VERBS.contains(&name) || matches!(name, "shutdown" | "runlevel0" | "runlevel6")
        })
    };
    // What is only shown, or kept for the next start, stops nothing.
    let shows = ["status", "show", "cat", "is-active", "is-enabled", "list-dependencies", "set-default"];
    let verb = command.operand(0);
    VERBS.contains(&verb) || !shows.contains(&verb) && command.operands().any(target)
}

/// Letters for which the kernel stops the machine, written to the file that takes them.
fn triggers_sysrq(command: &Simple) -> bool {
    const TRIGGER: &str = "/proc/sysrq-trigger";
    let printed = || match command.name() {
        "echo" | "printf" => printed::by(command, 100),
        "tee" | "cat" => command.input.as_ref().map_or(String::new(), |input| input.text.clone()),
        _ => String::new(),
    };
    let writes = command.writes.iter().any(|path| path == TRIGGER)
        || command.name() == "tee" && command.operands().any(|path| path == TRIGGER);
    writes && printed().contains(['b', 'o', 'c', 'e', 'i'])
}

fn vital(command: &Simple, path: &str) -> bool {
    is_vital(path, command.directory.as_deref())
}

fn deletes_system(command: &Simple) -> bool {
    let recursive = command.has('r', "recursive") || command.has('R', "") || command.name() != "rm";
    recursive && command.operands().any(|path| vital(command, path))
}

/// To move something away is to delete it where it was.
fn moves_system(command: &Simple) -> bool {
    let operands: Vec<&str> = command.operands().collect();
    operands.split_last().is_some_and(|(_, moved)| moved.iter().any(|path| vital(command, path)))
}

fn syncs_over_system(command: &Simple) -> bool {
    let deletes = command.arguments().iter().any(|word| word.starts_with("--delete") || word == "--del");
    deletes && !command.has('n', "dry-run") && command.operands().last().is_some_and(|to| vital(command, to))
}

/// Whether `find` starts at such a place and deletes whatever it finds.
fn finds_and_deletes_system(command: &Simple) -> bool {
    let words = || command.arguments().iter().map(String::as_str);
    let deletes = |word: &str| {
        matches!(word, "-delete" | "rm" | "/bin/rm" | "unlink" | "shred") || word.starts_with("rm -")
    };
    let vital = searches::places(command).any(|path| vital(command, path));
    vital && words().any(deletes) && !searches::is_narrowed(command)
}

/// Whether `fd` starts at such a place and deletes whatever it finds.
fn searches_and_deletes_system(command: &Simple) -> bool {
    let all = matches!(command.operand(0), "." | "" | ".*");
    all && command.says("rm") && command.operands().skip(1).any(|path| vital(command, path))
}

/// Options of `sudo` itself, not those of the program that it runs.
fn sudo_reads_stdin(command: &Simple) -> bool {
    wrapper_options(command).is_some_and(|own| own.has("S") || own.has_long("stdin"))
}

fn kills_all(command: &Simple) -> bool {
    // The first `-1` may be a signal; as the last word it is everybody.
    let arguments = command.arguments();
    arguments.len() >= 2 && arguments.last().is_some_and(|word| word == "-1")
}

/// Whether a function starts itself in the background.
fn starts_itself(name: &str, body: &str) -> bool {
    if name.is_empty() {
        return false;
    }
    let mut commands = body.split(['|', ';', '\n', '{', '(']);
    let in_background = |part: &str| {
        let part = part.trim();
        part.split('&').next().is_some_and(|first| first.trim() == name)
            && part.contains('&')
            && !part.contains("&&")
    };
    commands.any(in_background)
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
