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
            "go" if simple.operand(0) == "run" => Source::File(simple.operand(1).to_owned()),
            "ansible-playbook" | "java" | "rust-script" | "wg-quick" => {
                Source::File(simple.operands().last().unwrap_or_default().to_owned())
            }
            _ => Source::Itself,
        },
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => {
            super::awk::file(simple).map_or(Source::Itself, |file| from(Some(file)))
        }
        "sed" | "gsed" | "ssed" => super::sed::file(simple).map_or(Source::Itself, |file| from(Some(file))),
        "ed" | "ex" => Source::Input,
        "psql" | "mysql" | "mariadb" if !simple.values('f', "file").is_empty() => {
            from(simple.values('f', "file").first().copied())
        }
        name if super::others::is_database(name) => Source::Input,
        _ => Source::Itself,
    }
}
