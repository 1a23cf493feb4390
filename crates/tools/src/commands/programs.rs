//! What programs do with what they are given: run it, run it as a script, write it to a file.

use super::flow::{Flow, Origin};
use super::options::{Options, Shape, Value};
use super::simple::Simple;

/// Programs that run another, with the shape of their own options.
const WRAPPERS: &[(&str, Shape)] = &[
    ("sudo", Shape::new("ughpCrtTUDR", SUDO)),
    ("doas", Shape::new("uC", &[])),
    ("env", Shape::new("uCS", &["unset", "chdir", "split-string"])),
    ("nice", Shape::new("n", &["adjustment"])),
    ("ionice", Shape::new("cnp", &["class", "classdata", "pid"])),
    ("time", Shape::new("fo", &["format", "output"])),
    ("timeout", Shape::new("sk", &["signal", "kill-after"]).operands(1)),
    ("xargs", Shape::new("InPLdasE", &["max-args", "max-procs", "delimiter", "arg-file", "max-chars"])),
    ("stdbuf", Shape::new("ioe", &["input", "output", "error"])),
    ("nohup", Shape::new("", &[])),
    ("exec", Shape::new("a", &[])),
    ("command", Shape::new("", &[])),
    ("builtin", Shape::new("", &[])),
    ("setsid", Shape::new("", &[])),
    ("busybox", Shape::new("", &[])),
    ("flock", Shape::new("wE", &["wait", "timeout", "conflict-exit-code"]).operands(1)),
    ("strace", Shape::new("oepPE", &["output", "trace", "attach", "env"])),
    ("chroot", Shape::new("", &[]).operands(1)),
    ("unshare", Shape::new("", &[])),
];

const SUDO: &[&str] = &[
    "user",
    "group",
    "host",
    "prompt",
    "close-from",
    "role",
    "type",
    "command-timeout",
    "other-user",
    "chdir",
    "chroot",
];

const SHELL: Shape = Shape { value: Value::NextWord, ..Shape::new("oO", &["rcfile", "init-file"]) };
/// Shells in which the name of an option may be in the same word.
const OTHER_SHELL: Shape = Shape::new("oO", &["rcfile", "init-command"]);

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
    let of_their_own = |letters: &str, with_value: &'static str| {
        let options = Options::of(simple, Shape::new(with_value, &[]));
        if options.has(letters) { Source::Itself } else { from(options.words.first().copied()) }
    };
    match name {
        name if is_shell(name) => {
            let options = shell_options(simple);
            if options.has("c") {
                Source::Itself
            } else {
                from(options.words.first().copied().filter(|_| !options.has("s")))
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
        "watch" => vec![Options::of(simple, Shape::new("n", &["interval"])).words.join(" ")],
        "env" => split_by_env(simple).into_iter().collect(),
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
    let Some(options) = wrapper_options(simple) else { return Vec::new() };
    let mut words: Vec<String> = options.words.iter().map(|&word| word.to_owned()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    if simple.name() == "xargs"
        && let Some(flow) = reads.filter(|flow| !flow.is_all_unknown())
    {
        give_words(&options, &mut words, &flow.text);
    }
    vec![words]
}

/// The options of a program that runs another, up to that one.
pub(super) fn wrapper_options(simple: &Simple) -> Option<Options<'_>> {
    let (_, shape) = WRAPPERS.iter().find(|(name, _)| *name == simple.name())?;
    Some(Options::of(simple, *shape))
}

/// What `xargs` reads becomes words of the program that it runs: in the place that it names, or at the end.
fn give_words(xargs: &Options<'_>, words: &mut Vec<String>, text: &str) {
    let usual = || (xargs.has("i") || xargs.has_long("replace")).then_some("{}");
    match xargs.value('I', "replace").or_else(usual).filter(|place| !place.is_empty()) {
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

fn shell_options(simple: &Simple) -> Options<'_> {
    let attaches = matches!(simple.name(), "zsh" | "ksh" | "fish");
    Options::of(simple, if attaches { OTHER_SHELL } else { SHELL })
}

/// The script that a shell is given with `-c`.
fn shell_text(simple: &Simple) -> Option<String> {
    let options = shell_options(simple);
    options.words.first().filter(|_| options.has("c")).map(|text| (*text).to_owned())
}

/// The text that `env` splits into words, with the words behind it.
fn split_by_env(simple: &Simple) -> Option<String> {
    let options = wrapper_options(simple)?;
    let text = options.value('S', "split-string")?;
    Some([&[text], options.words.as_slice()].concat().join(" "))
}

fn ssh_command(simple: &Simple) -> Vec<&str> {
    Options::of(simple, Shape::new("bcDEeFIiJLlmOopQRSWw", &[]).operands(1)).words
}

/// Whether a program runs what it reads.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish")
}

/// Whether a shell runs what is given to a program. It does not if that is in another language, as a file says that is
/// run by its name.
pub(super) fn shell_runs(name: &str, source: &Source, text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    let names_another = *source == Source::Itself && first.starts_with("#!") && !first.contains("sh");
    !speaks_another_language(name) && !names_another
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
