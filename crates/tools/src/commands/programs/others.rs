//! Programs that take a command in a way of their own.

use super::code::{self, Language};
use super::{Inner, wrapper_options};
use crate::commands::environment;
use crate::commands::finding;
use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;

/// Clients of databases.
pub(in crate::commands) fn is_database(name: &str) -> bool {
    matches!(
        name,
        "psql"
            | "mysql"
            | "mariadb"
            | "sqlite3"
            | "sqlite"
            | "duckdb"
            | "sqlcmd"
            | "sqlplus"
            | "clickhouse-client"
            | "clickhouse"
            | "cockroach"
            | "cqlsh"
            | "bq"
            | "snowsql"
            | "mongosh"
            | "mongo"
            | "redis-cli"
            | "influx"
            | "pgcli"
            | "mycli"
            | "usql"
            | "isql"
            | "litecli"
            | "trino"
            | "presto"
            | "hive"
            | "beeline"
            | "spark-sql"
    )
}

pub(in crate::commands) fn ssh_options(simple: &Simple) -> Options<'_> {
    Options::of(simple, Shape::new("bcDEeFIiJLlmOopQRSWw", &[]).operands(1))
}

pub(super) fn ssh_command(simple: &Simple) -> Vec<&str> {
    ssh_options(simple).words
}

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    match simple.name() {
        "ssh" | "autossh" | "mosh" | "dbclient" => inner.script(&ssh_command(simple).join(" ")),
        "env" => {
            environment::functions(simple.arguments()).iter().for_each(|text| inner.script(text));
            if let Some(options) = wrapper_options(simple)
                && let Some(text) = options.value('S', "split-string")
            {
                inner.script(&[&[text], options.words.as_slice()].concat().join(" "));
            }
        }
        "script" if !simple.has('c', "command") => {
            let words: Vec<&str> = Options::of(simple, Shape::new("oOIBEmTt", &[]).operands(1)).words;
            match words.is_empty() {
                false => inner.program(words),
                true if simple.operands().next().is_some() => inner.script("sh"),
                true => {}
            }
        }
        "su" if simple.values('c', "command").is_empty() => {
            inner.findings.push(finding("shell_escape", "starts a shell that nobody attends"));
        }
        "sg" | "newgrp" => inner.program(simple.operands().skip(1)),
        "capsh" if simple.says("--") => {
            let rest = simple.arguments().iter().map(String::as_str).skip_while(|word| *word != "--").skip(1);
            inner.program(std::iter::once("bash").chain(rest));
        }
        "start-stop-daemon" => {
            let program = simple.values('x', "exec").into_iter().chain(simple.values('a', "startas")).next();
            let rest = simple.arguments().iter().map(String::as_str).skip_while(|word| *word != "--").skip(1);
            inner.program(program.into_iter().chain(rest));
        }
        "ip" if simple.says("netns") && simple.says("exec") => {
            let rest =
                simple.arguments().iter().map(String::as_str).skip_while(|word| *word != "exec").skip(2);
            inner.program(rest);
        }
        "latex" | "pdflatex" | "xelatex" | "lualatex" | "tex" | "pdftex"
            if simple.arguments().iter().any(|word| word.trim_start_matches('-') == "shell-escape") =>
        {
            inner.findings.push(crate::commands::rules::UNSEEN_CODE);
        }
        "wget" => simple.values('\0', "use-askpass").into_iter().for_each(|text| inner.script(text)),
        "openvpn" => ["up", "down", "route-up"]
            .iter()
            .flat_map(|option| simple.values('\0', option))
            .for_each(|text| inner.script(text)),
        "enscript" => simple.values('I', "filter").into_iter().for_each(|text| inner.script(text)),
        "gem" => simple.values('e', "editor").into_iter().for_each(|text| inner.script(text)),
        "pry" | "rake" => {
            simple.values('e', "").into_iter().for_each(|text| code::scan(Language::Ruby, text, &[], inner));
        }
        "gimp" | "gimp-console" | "blender" => {
            let code = simple.values('b', "batch").into_iter().chain(simple.values('\0', "python-expr"));
            code.for_each(|text| code::scan(Language::Python, text, &[], inner));
        }
        "debugfs" | "psftp" | "lftp" => {
            let commands = ['R', 'e', 'c'].into_iter().flat_map(|letter| simple.values(letter, ""));
            commands.for_each(|text| read_database(text, inner));
        }
        "socat" => socat(simple, inner),
        "nc" | "ncat" | "netcat" => {
            for long in ["exec", "sh-exec"] {
                simple.values('e', long).into_iter().for_each(|text| inner.script(text));
            }
        }
        "expect" => {
            for script in simple.values('c', "") {
                for line in script.split([';', '\n']) {
                    if let Some(command) =
                        line.trim().strip_prefix("spawn ").or(line.trim().strip_prefix("exec "))
                    {
                        inner.script(command);
                    }
                }
            }
        }
        "rpm" => {
            for value in simple.values('E', "eval") {
                let shell = value.split_once("%(").and_then(|(_, rest)| rest.rsplit_once(')'));
                shell.into_iter().for_each(|(text, _)| inner.script(text));
                if let Some((_, lua)) = value.split_once("%{lua:") {
                    code::scan(Language::Lua, lua, &[], inner);
                }
            }
        }
        "tmux" => terminal_words(
            simple,
            &[
                "new-session",
                "new",
                "new-window",
                "neww",
                "split-window",
                "run-shell",
                "run",
                "send-keys",
                "send",
                "respawn-pane",
            ],
            inner,
        ),
        "screen" => {
            let shape = Shape::new("SceTthpX", &[]);
            if simple.says("stuff") {
                simple
                    .arguments()
                    .last()
                    .into_iter()
                    .for_each(|text| inner.script(text.trim_end_matches("\\n")));
            } else {
                inner.program(Options::of(simple, shape).words);
            }
        }
        "xterm"
        | "konsole"
        | "alacritty"
        | "kitty"
        | "urxvt"
        | "rxvt"
        | "st"
        | "foot"
        | "wezterm"
        | "lxterminal"
        | "xfce4-terminal"
        | "x-terminal-emulator"
        | "tilix"
        | "mate-terminal"
        | "terminator"
        | "nix" => {
            let runs =
                |word: &String| matches!(word.as_str(), "-e" | "-x" | "-c" | "--command" | "--execute");
            let at = simple.arguments().iter().position(runs);
            let rest = at.and_then(|at| simple.arguments().get(at + 1..)).unwrap_or_default();
            match rest {
                [text] => inner.script(text),
                words => inner.program(words.iter().map(String::as_str)),
            }
        }
        // The index of an array is calculated, and what stands in it is run.
        "test" | "[" | "[[" | "let" | "unset" | "read" | "printf" => {
            let is_index = |word: &&String| word.contains("[$(") || word.contains("[`");
            let looks = simple.name() != "printf" || simple.says("-v");
            for word in simple.arguments().iter().filter(|_| looks).filter(is_index) {
                inner.script(&format!(": \"{}\"", word.replace('"', "")));
            }
        }
        "ansible" => ansible(simple, inner),
        "enable" if simple.has('f', "") => inner.findings.push(crate::commands::rules::UNSEEN_CODE),
        "systemd-run" if simple.arguments().iter().any(|word| word.starts_with("--on-")) => {
            inner.findings.push(finding("scheduled_job", "runs something later by itself"));
        }
        "osascript" => {
            for text in simple.values('e', "") {
                let pieces = super::tokens::pieces(text);
                if text.contains("do shell script") {
                    pieces.iter().filter_map(super::tokens::Piece::text).for_each(|text| inner.script(text));
                }
            }
        }
        "pwsh" | "powershell" => {
            let encoded = |word: &String| {
                let word = word.to_ascii_lowercase();
                word.starts_with("-e") && "-encodedcommand".starts_with(&word) && word != "-ex"
            };
            if simple.arguments().iter().any(encoded) {
                inner
                    .findings
                    .push(finding("decoded_script", "runs what it decodes, which nobody can read before"));
            }
            powershell(simple, inner);
        }
        "run-parts" if simple.has('\0', "regex") => {
            inner.findings.push(finding("shell_escape", "starts a shell that nobody attends"));
        }
        name if is_database(name) => simple.arguments().iter().for_each(|text| read_database(text, inner)),
        _ => {}
    }
}

/// The command of PowerShell, whose words are much like those of a shell.
fn powershell(simple: &Simple, inner: &mut Inner) {
    let runs = |word: &String| matches!(word.to_ascii_lowercase().as_str(), "-c" | "-command" | "/c");
    let at = simple.arguments().iter().position(runs);
    let text = at.and_then(|at| simple.arguments().get(at + 1..)).unwrap_or_default().join(" ");
    let lower = text.to_ascii_lowercase();
    let says = |names: &[&str]| {
        lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| names.contains(&word))
    };
    if says(&["iex", "invoke-expression"]) {
        let fetches =
            ["iwr", "irm", "invoke-webrequest", "invoke-restmethod", "downloadstring", "curl", "wget"];
        inner.findings.push(match says(&fetches) {
            true => finding("remote_script", "runs what it downloads"),
            false => crate::commands::rules::UNSEEN_CODE,
        });
    }
    inner.script(&text);
}

/// The words behind a command of `tmux`, which its shell runs.
fn terminal_words(simple: &Simple, commands: &[&str], inner: &mut Inner) {
    let words = simple.arguments();
    if let Some(at) = words.iter().position(|word| commands.contains(&word.as_str())) {
        let rest = words.get(at + 1..).unwrap_or_default();
        let options = Options::of_words("tmux", rest, Shape::new("censtxyFl", &[]));
        let keys = ["Enter", "C-m", "ENTER"];
        let text: Vec<&str> = options.words.iter().copied().filter(|word| !keys.contains(word)).collect();
        inner.script(&text.join(" "));
    }
}

/// Modules of Ansible that do what a program of the same kind does.
fn ansible(simple: &Simple, inner: &mut Inner) {
    let arguments = simple.values('a', "args").join(" ");
    let value = |key: &str| arguments.split_whitespace().find_map(|word| word.strip_prefix(key));
    for module in simple.values('m', "module-name") {
        match module.rsplit('.').next().unwrap_or(module) {
            "reboot" | "shutdown" => inner.program(["reboot"]),
            "file" if value("state=") == Some("absent") => {
                inner.program(["rm", "-rf", value("path=").or(value("dest=")).unwrap_or_default()]);
            }
            _ => {}
        }
    }
}

/// Addresses such as `EXEC:command`.
fn socat(simple: &Simple, inner: &mut Inner) {
    for address in simple.operands() {
        let Some((kind, rest)) = address.split_once(':') else { continue };
        if matches!(kind.to_ascii_lowercase().as_str(), "exec" | "system" | "shell") {
            inner.findings.push(finding("reverse_shell", "connects a shell to the network"));
            inner.script(rest.split(',').next().unwrap_or_default());
        }
    }
}

/// Lines of a client of a database that start a shell: `\! …`, `.shell …`, `system …`.
pub(super) fn read_database(text: &str, inner: &mut Inner) {
    for line in text.lines() {
        let line = line.trim();
        let command =
            ["\\!", ".shell ", ".system ", "system ", "!"].iter().find_map(|sign| line.strip_prefix(sign));
        if let Some(command) = command {
            inner.script(command);
        } else if let Some(file) =
            line.strip_prefix("\\o ").or(line.strip_prefix(".output ")).or(line.strip_prefix(".once "))
        {
            match file.trim().strip_prefix('|') {
                Some(command) => inner.script(command),
                None => inner.writes.push(file.trim().to_owned()),
            }
        }
    }
}
