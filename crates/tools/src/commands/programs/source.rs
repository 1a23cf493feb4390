//! Where a program finds the script that it runs.

use super::code::Language;
use super::shells;
use crate::commands::names::is_shell;
use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;

/// Names of standard input.
const INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Where the script is that a program runs.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::commands) enum Source {
    /// It reads it.
    Input,
    File(String),
    /// It runs no script but itself, or one that is among its words.
    Itself,
}

/// Programs that run the commands in a file of their project, which is no script of a shell.
pub(super) fn is_configured(name: &str) -> bool {
    const PROGRAMS: [&str; 15] = [
        "npm",
        "yarn",
        "pnpm",
        "composer",
        "bundle",
        "rake",
        "cmake",
        "just",
        "task",
        "docker-compose",
        "go",
        "ansible-playbook",
        "java",
        "rust-script",
        "wg-quick",
    ];
    PROGRAMS.contains(&name)
}

/// Programs whose commands come in lines, of which those that begin with `!` are for a shell.
pub(super) fn takes_lines(name: &str) -> bool {
    matches!(
        name,
        "ftp" | "sftp" | "lftp" | "psftp" | "mail" | "mailx" | "mutt" | "dc" | "smbclient" | "telnet"
    )
}

/// Compilers. What they make of a file that the same command writes is likely run next.
pub(super) fn compiles(name: &str) -> bool {
    matches!(
        name,
        "gcc"
            | "cc"
            | "clang"
            | "g++"
            | "c++"
            | "clang++"
            | "tcc"
            | "rustc"
            | "javac"
            | "zig"
            | "swift"
            | "swiftc"
    )
}

/// Whether a path is that of a program's source.
fn is_source(path: &str) -> bool {
    const ENDS: [&str; 9] = [".c", ".cc", ".cpp", ".cxx", ".rs", ".java", ".zig", ".swift", ".m"];
    INPUT.contains(&path) || path.starts_with("/dev/fd/") || ENDS.iter().any(|end| path.ends_with(end))
}

/// Where a program finds the script that it runs.
pub(in crate::commands) fn source(simple: &Simple) -> Source {
    let name = simple.name();
    let from = |operand: Option<&str>| match operand {
        None => Source::Input,
        Some(operand) if INPUT.contains(&operand) => Source::Input,
        Some(path) => Source::File(path.to_owned()),
    };
    if is_shell(name) {
        let options = shells::options(simple);
        return if options.has("c") {
            Source::Itself
        } else {
            from(options.words.first().copied().filter(|_| !options.has("s")))
        };
    }
    if let Some(language) = Language::of(name) {
        return match language.script(simple) {
            Some(script) => from(script),
            None => Source::Itself,
        };
    }
    match name {
        "source" | "." => from(simple.arguments().first().map(String::as_str)),
        "su" if !simple.has('c', "command") => Source::Input,
        "ssh" if super::others::ssh_command(simple).is_empty() => Source::Input,
        "at" | "batch" => match simple.values('f', "").first() {
            Some(path) => Source::File((*path).to_owned()),
            None => Source::Input,
        },
        "make" | "gmake" | "bmake" => match simple.values('f', "file").first() {
            Some(path) => from(Some(path)),
            None => Source::File("Makefile".to_owned()),
        },
        "parallel" if Options::of(simple, Shape::new("jnNLI", &["jobs"])).words.is_empty() => Source::Input,
        name if is_configured(name) => match name {
            "npm" | "yarn" | "pnpm" => Source::File("package.json".to_owned()),
            "composer" => Source::File("composer.json".to_owned()),
            "bundle" => Source::File("Gemfile".to_owned()),
            "rake" => Source::File("Rakefile".to_owned()),
            "cmake" => Source::File("CMakeLists.txt".to_owned()),
            "just" => Source::File("justfile".to_owned()),
            "task" => Source::File("Taskfile.yml".to_owned()),
            "docker-compose" => Source::File("docker-compose.yml".to_owned()),
            "go" if simple.operand(0) == "run" => from(Some(simple.operand(1))),
            "ansible-playbook" | "java" | "rust-script" | "wg-quick" => {
                Source::File(simple.operands().last().unwrap_or_default().to_owned())
            }
            _ => Source::Itself,
        },
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
            super::awk::file(simple).map_or(Source::Itself, |file| from(Some(file)))
        }
        "sed" | "gsed" | "ssed" => super::sed::file(simple).map_or(Source::Itself, |file| from(Some(file))),
        "ed" | "ex" | "newgrp" => Source::Input,
        "vim" | "nvim" | "vi" | "gvim" | "gdb" => {
            super::editors::commands_file(simple).map_or(Source::Itself, from)
        }
        name if takes_lines(name) => Source::Input,
        name if compiles(name) && simple.says("-") => Source::Input,
        name if compiles(name) => {
            simple.operands().find(|path| is_source(path)).map_or(Source::Itself, |path| from(Some(path)))
        }
        "cargo" if matches!(simple.operand(0), "run" | "r" | "build" | "b" | "test" | "t") => {
            Source::File("src/main.rs".to_owned())
        }
        "psql" | "mysql" | "mariadb" if !simple.values('f', "file").is_empty() => {
            from(simple.values('f', "file").first().copied())
        }
        name if super::others::is_database(name) => Source::Input,
        _ => Source::Itself,
    }
}
