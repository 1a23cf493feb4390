//! Names of programs: which are shells, which only show text, and which a pattern in a program's place may stand for.

use super::wildcard;

/// Programs that destroy something or run others. A pattern such as `/bin/r?` is taken for the first that it fits.
const DANGEROUS: &[&str] = &[
    "rm",
    "dd",
    "mkfs",
    "mke2fs",
    "shred",
    "wipefs",
    "blkdiscard",
    "reboot",
    "shutdown",
    "halt",
    "poweroff",
    "kill",
    "killall",
    "pkill",
    "chmod",
    "chown",
    "sh",
    "bash",
    "dash",
    "zsh",
    "python3",
    "perl",
    "nc",
    "curl",
    "wget",
    "find",
    "mv",
    "cat",
    "init",
    "sudo",
];

/// Programs that only show or store the text that they are given.
const TEXT: &[&str] = &[
    "echo",
    "printf",
    "grep",
    "egrep",
    "fgrep",
    "rg",
    "ag",
    "ack",
    "cat",
    "tee",
    "git",
    "gh",
    "glab",
    "man",
    "info",
    "help",
    "apropos",
    "whatis",
    "which",
    "whereis",
    "type",
    "hash",
    "jq",
    "yq",
    "logger",
    "notify-send",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "tr",
    "cut",
    "sort",
    "uniq",
    "wc",
    "head",
    "tail",
    "diff",
    "comm",
    "expr",
    "test",
    "[",
    "[[",
    "let",
    "export",
    "declare",
    "local",
    "readonly",
    "typeset",
    "read",
    "set",
    "for",
    "select",
    "case",
    "ls",
    "basename",
    "dirname",
    "figlet",
    "cowsay",
    "say",
    "alias",
    "unalias",
    "compgen",
    "less",
    "more",
    "apt",
    "apt-get",
    "apt-cache",
    "dnf",
    "yum",
    "brew",
    "pacman",
    "dpkg",
    "pip",
    "pip3",
    "npm",
    "yarn",
    "cargo",
    "go",
    "touch",
    "mkdir",
    "cp",
    "mv",
    "rm",
    "ln",
    "curl",
    "wget",
    "column",
    "fold",
    "fmt",
    "strings",
    "base64",
    "xxd",
    "od",
    "md5sum",
    "sha256sum",
    "stat",
    "file",
    "du",
    "trap",
    "eval",
    "dig",
    "host",
];

/// Whether a program runs what it reads as a shell does.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(
        name,
        "sh" | "bash"
            | "dash"
            | "zsh"
            | "ksh"
            | "ash"
            | "fish"
            | "rbash"
            | "mksh"
            | "lksh"
            | "yash"
            | "csh"
            | "tcsh"
            | "ksh93"
            | "posh"
    )
}

/// Whether what a program is told is text to it and no command.
pub(super) fn is_text(name: &str) -> bool {
    TEXT.contains(&name)
}

/// The program that a pattern in a program's place may be, if it is one.
pub(super) fn fitting(name: &str) -> Option<&'static str> {
    let is_pattern = name.len() > 1 && name.contains(['*', '?', '[']) && name != "[[";
    DANGEROUS.iter().copied().find(|program| is_pattern && wildcard::fits(name, program))
}

/// Whether a program is one whose name says that it destroys something, or a shell.
pub(super) fn is_dangerous(name: &str) -> bool {
    DANGEROUS.contains(&name)
}
