//! What programs do with what they are given: run it, run it as a script, write it to a file.

use super::flow::{Flow, Origin};
use super::groups::is_assignment;
use super::simple::Simple;

/// Programs that run another, with their options that have a value, and how many operands they have themselves.
const WRAPPERS: &[(&str, &str, usize)] = &[
    ("sudo", "ughpCrtTUDR", 0),
    ("doas", "uC", 0),
    ("env", "uC", 0),
    ("nice", "n", 0),
    ("ionice", "cnp", 0),
    ("time", "fo", 0),
    ("timeout", "sk", 1),
    ("xargs", "InPLdasE", 0),
    ("stdbuf", "ioe", 0),
    ("nohup", "", 0),
    ("exec", "a", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("setsid", "", 0),
    ("busybox", "", 0),
    ("flock", "wE", 1),
    ("strace", "oepPE", 0),
    ("chroot", "", 1),
    ("unshare", "", 0),
];

/// Names of standard input.
const INPUT: [&str; 4] = ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Where the script is that a program runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// It reads it.
    Input,
    File(String),
    /// It runs no script but itself, or one that is among its words.
    Itself,
}

/// Where a program finds the script that it runs.
pub(super) fn source(simple: &Simple) -> Source {
    let name = simple.name();
    let from = |operand: Option<&str>| match operand {
        None => Source::Input,
        Some(operand) if INPUT.contains(&operand) => Source::Input,
        Some(path) => Source::File(path.to_owned()),
    };
    let of_their_own = |letters: &str, with_value: &str| {
        let (options, operands) = own_options(simple, with_value, 0);
        let has_script = options.iter().any(|option| is_among(option, letters));
        if has_script { Source::Itself } else { from(operands.first().copied()) }
    };
    match name {
        name if is_shell(name) => {
            let (options, _) = own_options(simple, "oO", 0);
            if options.iter().any(|option| is_among(option, "s")) && shell_text(simple).is_none() {
                Source::Input
            } else {
                of_their_own("c", "oO")
            }
        }
        "source" | "." => from(simple.arguments().first().map(String::as_str)),
        "python" | "python2" | "python3" => of_their_own("cm", "WX"),
        "perl" | "ruby" => of_their_own("eE", "IC"),
        "node" => of_their_own("ep", "r"),
        "php" => of_their_own("r", "dc"),
        "su" if !simple.has('c', "command") => Source::Input,
        "ssh" if ssh_command(simple).is_empty() => Source::Input,
        "at" | "batch" if !simple.has('f', "") => Source::Input,
        _ => Source::Itself,
    }
}

/// What a program has among its words to run as a script.
pub(super) fn passed_on(simple: &Simple) -> Vec<String> {
    let after = |option: &dyn Fn(&str) -> bool| {
        let at = simple.words.iter().position(|word| option(word));
        at.and_then(|at| simple.words.get(at + 1)).cloned()
    };
    let letter = |letter: char| {
        move |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with(letter)
    };
    match simple.name() {
        name if is_shell(name) => shell_text(simple).into_iter().collect(),
        "su" | "script" | "flock" => after(&letter('c')).into_iter().collect(),
        "eval" => vec![simple.arguments().join(" ")],
        "ssh" => Some(ssh_command(simple).join(" ")).filter(|text| !text.is_empty()).into_iter().collect(),
        "watch" => vec![own_options(simple, "n", 0).1.join(" ")],
        "env" => after(&|word| word == "-S" || word == "--split-string").into_iter().collect(),
        "trap" => simple.operands().next().map(str::to_owned).into_iter().collect(),
        "alias" => simple
            .operands()
            .filter_map(|word| word.split_once('='))
            .map(|(_, text)| text.to_owned())
            .collect(),
        "python" | "python2" | "python3" => {
            after(&letter('c')).map(|code| quoted_texts(&code)).unwrap_or_default()
        }
        "perl" | "ruby" | "node" => after(&letter('e')).map(|code| quoted_texts(&code)).unwrap_or_default(),
        "php" => after(&letter('r')).map(|code| quoted_texts(&code)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// The programs that another runs, each with its words.
pub(super) fn run_by(simple: &Simple, reads: Option<&Flow>) -> Vec<Vec<String>> {
    if simple.name() == "find" {
        return run_by_find(simple);
    }
    let Some((_, with_value, operands)) = WRAPPERS.iter().find(|(name, _, _)| *name == simple.name()) else {
        return Vec::new();
    };
    let (_, words) = own_options(simple, with_value, *operands);
    let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    if words.is_empty() {
        return Vec::new();
    }
    if simple.name() == "xargs"
        && let Some(text) = reads.and_then(|flow| flow.text.as_deref())
    {
        give_words(simple, &mut words, text);
    }
    vec![words]
}

/// What `xargs` reads becomes words of the program that it runs: in the place that it names, or at the end.
fn give_words(xargs: &Simple, words: &mut Vec<String>, text: &str) {
    let options = xargs.arguments();
    let place =
        options.iter().zip(options.iter().skip(1)).find_map(|(option, value)| match option.as_str() {
            "-I" | "--replace" => Some(value.as_str()),
            _ => option.strip_prefix("-I").or(option.strip_prefix("--replace=")),
        });
    match place.filter(|place| !place.is_empty()) {
        Some(place) => {
            let value = text.trim();
            // Once is enough to see what it does.
            if let Some(word) = words.iter_mut().find(|word| word.contains(place)) {
                *word = word.replacen(place, value, 1);
            }
        }
        None => words.extend(text.split_whitespace().map(str::to_owned)),
    }
}

fn run_by_find(simple: &Simple) -> Vec<Vec<String>> {
    let runs = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let after = simple.words.split(runs).skip(1);
    let programs = after.map(|words| words.iter().take_while(|word| *word != ";" && *word != "+"));
    programs.map(|words| words.cloned().collect::<Vec<_>>()).filter(|words| !words.is_empty()).collect()
}

/// The options of a program itself, and the words behind them and its own operands.
fn own_options<'a>(
    simple: &'a Simple,
    with_value: &str,
    mut operands: usize,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let mut options = Vec::new();
    let mut words = simple.arguments().iter().map(String::as_str).peekable();
    while let Some(word) = words.peek().copied() {
        if word == "--" {
            words.next();
            break;
        } else if word.len() > 1 && word.starts_with(['-', '+']) {
            options.push(word);
            words.next();
            let mut letters = word.chars().skip(1);
            let takes_value = letters.next().is_some_and(|letter| with_value.contains(letter));
            if takes_value && letters.next().is_none() {
                words.next();
            }
        } else if is_assignment(word) {
            words.next();
        } else if operands > 0 {
            operands -= 1;
            words.next();
        } else {
            break;
        }
    }
    (options, words.collect())
}

/// Whether short options have one of the letters.
fn is_among(option: &str, letters: &str) -> bool {
    !option.starts_with("--")
        && option.starts_with('-')
        && option.chars().any(|letter| letters.contains(letter))
}

/// The script that a shell is given with `-c`.
fn shell_text(simple: &Simple) -> Option<String> {
    let (options, operands) = own_options(simple, "oO", 0);
    let is_given = options.iter().any(|option| is_among(option, "c"));
    operands.first().filter(|_| is_given).map(|text| (*text).to_owned())
}

fn ssh_command(simple: &Simple) -> Vec<&str> {
    own_options(simple, "bcDEeFIiJLlmOopQRSWw", 1).1
}

/// Whether a program runs what it reads.
fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish")
}

/// Whether a shell runs what is given to a program. It does not if that is in another language.
pub(super) fn shell_runs(name: &str, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    !speaks_another_language(name) && (!first.starts_with("#!") || first.contains("sh"))
}

pub(super) fn speaks_another_language(name: &str) -> bool {
    matches!(name, "python" | "python2" | "python3" | "perl" | "ruby" | "node" | "php")
}

/// Whether a program, or a word of the shell, prints nothing.
pub(super) fn is_silent(name: &str) -> bool {
    const SILENT: [&str; 24] = [
        "true", "false", ":", "cd", "set", "export", "unset", "local", "declare", "readonly", "shift",
        "read", "test", "[", "[[", "for", "select", "case", "mkdir", "touch", "rm", "chmod", "sleep", "wait",
    ];
    SILENT.contains(&name)
}

/// Where a program's output comes from, as far as its name tells.
pub(super) fn origin(simple: &Simple) -> Origin {
    let name = simple.name();
    let decodes = match name {
        "base64" | "base32" => simple.has('d', "decode") || simple.has('D', ""),
        "xxd" => simple.has('r', "revert"),
        _ => ["openssl", "tr", "rev", "gunzip", "zcat", "uudecode"].contains(&name),
    };
    Origin {
        downloaded: fetches(name),
        decoded: decodes,
        processes: matches!(name, "pgrep" | "pidof"),
        piped: false,
    }
}

fn fetches(name: &str) -> bool {
    matches!(name, "curl" | "wget" | "fetch" | "nc" | "ncat")
}

/// The files that a program's arguments say it writes what it prints to.
pub(super) fn writes_to(simple: &Simple) -> Vec<String> {
    let name = simple.name();
    if name == "tee" {
        return simple.operands().map(str::to_owned).collect();
    } else if !fetches(name) {
        return Vec::new();
    }
    let words = simple.arguments();
    let letter = if name == "wget" { 'O' } else { 'o' };
    let named = words.iter().enumerate().filter_map(|(at, word)| match word.strip_prefix("--") {
        Some("output" | "output-document") => words.get(at + 1).cloned(),
        Some(long) => {
            long.strip_prefix("output").and_then(|rest| rest.split_once('=')).map(|(_, to)| to.to_owned())
        }
        None if word.starts_with('-') && word.ends_with(letter) => words.get(at + 1).cloned(),
        None => None,
    });
    // Or the last part of the address.
    let by_address = simple.operands().filter_map(|word| word.rsplit('/').next()).map(str::to_owned);
    named.chain(by_address).collect()
}

/// The texts in quotes of a program in another language: what it would give to a shell is among them.
fn quoted_texts(code: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let quote = rest.get(start..start + 1).unwrap_or_default();
        let after = rest.get(start + 1..).unwrap_or_default();
        let Some(end) = after.find(quote) else { break };
        texts.push(after.get(..end).unwrap_or_default().to_owned());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    texts
}
