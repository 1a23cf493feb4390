//! What programs do with what they are given: run it, run it as a script, write it to a file.

mod awk;
mod code;
mod containers;
mod editors;
mod embedded;
mod git;
mod lisp;
mod makefile;
mod others;
mod prints;
mod sed;
mod shells;
mod source;
mod texts;
mod tokens;
mod wrappers;
mod xargs;

pub(super) use code::Language;
pub(super) use others::{is_database, ssh_options};
pub(super) use prints::{is_silent, origin, passes_lines_on, unpacks, writes_to};
pub(super) use source::{Source, source};

use super::Finding;
use super::files::Files;
use super::flow::Flow;
use super::names;
use super::options::Options;
use super::simple::Simple;

/// What a program runs, writes and reads, as far as its words tell.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Texts that a shell runs.
    pub(super) scripts: Vec<Passed>,
    /// Programs with their words.
    pub(super) programs: Vec<Vec<String>>,
    pub(super) findings: Vec<Finding>,
    pub(super) writes: Vec<String>,
    pub(super) opens: Vec<String>,
    /// Whether it runs code of which nothing is known.
    pub(super) has_unknown_code: bool,
}

/// A text that a shell runs, with the name and arguments that it is given.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) text: String,
    pub(super) arguments: Option<Vec<String>>,
}

impl From<String> for Passed {
    fn from(text: String) -> Self {
        Passed { text, arguments: None }
    }
}

impl Inner {
    fn script(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.scripts.push(text.to_owned().into());
        }
    }

    fn program<'w>(&mut self, words: impl IntoIterator<Item = &'w str>) {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if !words.is_empty() {
            self.programs.push(words);
        }
    }
}

/// Adds what a program runs.
pub(super) fn run_by(simple: &Simple, reads: Option<&Flow>, files: &Files, inner: &mut Inner) {
    let name = simple.name();
    if names::is_shell(name) {
        return shells::run_by(simple, inner);
    }
    if let Some(language) = Language::of(name) {
        code::run_by(simple, language, inner);
        if language == Language::Other && names_shell(simple) {
            inner.findings.push(super::rules::SHELL_ESCAPE);
        }
        return;
    }
    match name {
        "xargs" => {
            let named = simple.values('a', "arg-file").first().and_then(|path| files.get(path));
            xargs::run_by(simple, named.or(reads), inner);
        }
        "parallel" => {
            let named = simple.values('a', "arg-file").first().and_then(|path| files.get(path));
            xargs::run_by_parallel(simple, named.or(reads), inner);
        }
        "find" | "gfind" => xargs::run_by_find(simple, inner),
        "fd" | "fdfind" => xargs::run_by_fd(simple, inner),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::run_by(simple, inner),
        "sed" | "gsed" | "ssed" => sed::run_by(simple, inner),
        "make" | "gmake" | "bmake" => makefile::run_by(simple, files, inner),
        "git" => git::run_by(simple, inner),
        "eval" => shells::evaluated(simple, inner),
        "trap" | "alias" => shells::deferred(simple, inner),
        "vim" | "vi" | "nvim" | "view" | "ex" | "rvim" | "vimdiff" | "gvim" | "less" | "gdb" | "emacs"
        | "ed" => {
            editors::run_by(simple, inner);
        }
        _ => others::run_by(simple, inner),
    }
    embedded::run_by(simple, inner);
    containers::run_by(simple, inner);
    if !matches!(name, "xargs" | "find" | "parallel") {
        run_by_wrapper(simple, inner);
    }
}

/// Adds the program that a wrapper runs.
fn run_by_wrapper(simple: &Simple, inner: &mut Inner) {
    let name = simple.name();
    if let Some((end, shape)) = wrappers::command(name, simple.arguments()) {
        let rest = simple.arguments().get(end..).unwrap_or_default();
        let options = Options::of_words(name, rest, shape);
        let words: Vec<&str> = options.words.iter().copied().skip_while(|word| *word == "--").collect();
        return match words.as_slice() {
            [text] if text.contains(' ') => inner.script(text),
            words if matches!(name, "docker" | "podman" | "nerdctl") => {
                inner.program(containers::as_seen_from_host(simple, words).iter().map(String::as_str));
            }
            _ => inner.program(words),
        };
    }
    if name == "command" && (simple.has('v', "") || simple.has('V', "")) {
        return;
    }
    if let Some(options) = wrapper_options(simple) {
        let version = options.has_long("version") || options.has_long("help");
        if options.words.is_empty() || version {
            return;
        }
        let machine = |word: &&str| *word == "--" || name == "setarch" && is_machine(word);
        return inner.program(options.words.iter().copied().skip_while(machine));
    }
    if !names::is_text(name) && inner.scripts.is_empty() && inner.programs.is_empty() {
        run_by_unknown_wrapper(simple, inner);
        if inner.programs.is_empty() {
            texts::run_in(simple.arguments().iter().map(String::as_str), inner);
        }
        if names_shell(simple) {
            inner.findings.push(super::rules::SHELL_ESCAPE);
        }
    }
}

/// Kinds of machines, of which `setarch` may be given one.
fn is_machine(word: &str) -> bool {
    const STARTS: [&str; 8] = ["x86", "i386", "i686", "linux", "uname", "aarch64", "arm", "ppc"];
    STARTS.iter().any(|start| word.starts_with(start))
}

/// A program that nobody knows may run what stands among its words: a shell with a script, or something that destroys.
fn run_by_unknown_wrapper(simple: &Simple, inner: &mut Inner) {
    let words = simple.arguments();
    for (at, word) in words.iter().enumerate().take(50) {
        let rest = words.get(at..).unwrap_or_default();
        let base = word.rsplit('/').next().unwrap_or(word);
        let script = rest.get(1).is_some_and(|next| next.starts_with('-') && next.ends_with('c'));
        let destroys = matches!(base, "dd" | "mke2fs" | "shred" | "wipefs" | "blkdiscard")
            || base.starts_with("mkfs")
            // `rm` is also a command of many programs.
            || base == "rm" && rest.get(1).is_some_and(|next| next.starts_with(['-', '/', '~']));
        if names::is_shell(base) && script || destroys && rest.len() > 1 {
            return inner.program(rest.iter().map(String::as_str));
        }
    }
}

/// Whether a program is told to run a shell in a way of its own, such as `cpulimit -f /bin/sh`.
fn names_shell(simple: &Simple) -> bool {
    const SHELLS: [&str; 6] =
        ["/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh"];
    let only_look =
        ["docker", "podman", "kubectl", "chsh", "ssh", "tmux", "ldd", "readelf", "shellcheck", "sha1sum"];
    let asks = |word: &String| {
        // `SHELL=/bin/bash` says which shell runs what is read elsewhere.
        let chosen = word.split_once('=').filter(|(name, _)| name.ends_with("SHELL"));
        if chosen.is_some_and(|(_, shell)| SHELLS.contains(&shell)) {
            return false;
        }
        let quoted = |shell: &&str| {
            ["\"", "'", "(", " ", "!", ":", "="].iter().any(|sign| word.contains(&format!("{sign}{shell}")))
        };
        let begins =
            |shell: &&str| word.strip_prefix(*shell).is_some_and(|rest| rest.starts_with([';', ' ', ',']));
        let above = word.starts_with("..") && SHELLS.iter().any(|shell| word.ends_with(shell));
        SHELLS.contains(&word.as_str()) || above || SHELLS.iter().any(begins) || SHELLS.iter().any(quoted)
    };
    !names::is_text(simple.name())
        && !only_look.contains(&simple.name())
        && simple.arguments().iter().any(asks)
}

/// The options of a program that runs another, up to that one.
pub(super) fn wrapper_options(simple: &Simple) -> Option<Options<'_>> {
    Some(Options::of(simple, wrappers::shape(simple.name())?))
}

/// Adds what a program runs of a text that it reads, from its input or from a file that the command writes.
pub(super) fn run_text(simple: &Simple, source: &Source, text: &str, inner: &mut Inner) {
    let name = simple.name();
    let first = text.lines().next().unwrap_or_default();
    let by_name = *source == Source::Itself;
    if let Some(language) = Language::of(name) {
        return code::scan(language, text, &[], inner);
    }
    if by_name && first.starts_with("#!") && !first.contains("sh") {
        let language = first.rsplit(['/', ' ']).next().and_then(Language::of);
        if let Some(language) = language {
            code::scan(language, text, &[], inner);
        }
        return;
    }
    match name {
        "make" | "gmake" | "bmake" => makefile::read(text, inner),
        "vim" | "nvim" | "vi" | "gvim" | "gdb" => editors::read_commands(name, text, inner),
        _ if source::takes_lines(name) => others::read_database(text, inner),
        "ed" | "ex" => editors::read_ed(text, inner),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::read(text, inner),
        "sed" | "gsed" | "ssed" => sed::read(text, inner),
        _ if source::is_configured(name) || source::compiles(name) || name == "cargo" => {
            code::scan(Language::Other, text, &[], inner);
            texts::run_in(text.lines(), inner);
        }
        _ if others::is_database(name) => {
            others::read_database(text, inner);
            inner.findings.extend(super::rules::databases::statement(text));
        }
        _ => {
            let arguments = std::iter::once(name.to_owned()).chain(shells::arguments(simple)).collect();
            inner.scripts.push(Passed { text: text.to_owned(), arguments: Some(arguments) });
        }
    }
}

/// What code among an interpreter's words prints, if it prints one text that is written out.
pub(super) fn printed_by_code(simple: &Simple) -> Option<String> {
    let language = Language::of(simple.name())?;
    let code = language.code(simple).into_iter().next()?;
    let pieces = tokens::pieces(code);
    let is_print = |piece: &&tokens::Piece| {
        matches!(piece.name(), Some("print" | "puts" | "say" | "echo" | "log" | "printf"))
    };
    let at = pieces.iter().position(|piece| is_print(&piece))?;
    if pieces.iter().filter(is_print).count() > 1 {
        return None;
    }
    let rest = pieces.get(at + 1..)?;
    let rest = if rest.first().is_some_and(|next| next.is('(')) { rest.get(1..)? } else { rest };
    rest.first().and_then(tokens::Piece::text).map(str::to_owned)
}

/// Whether a program is an interpreter of another language than that of the shell.
pub(super) fn speaks_another_language(name: &str) -> bool {
    Language::of(name).is_some()
}

/// The packages that a program installs from files, with the scripts that they bring.
pub(super) fn installs(simple: &Simple) -> impl Iterator<Item = &str> {
    let is_installer = matches!(
        simple.name(),
        "dpkg"
            | "rpm"
            | "apt"
            | "apt-get"
            | "dnf"
            | "yum"
            | "pip"
            | "pip3"
            | "installer"
            | "snap"
            | "apk"
            | "msiexec"
    );
    simple.operands().filter(move |_| is_installer)
}

/// Whether what a program reads may be data as well as a script.
pub(super) fn takes_data(simple: &Simple, reads: &Flow) -> bool {
    let name = simple.name();
    let is_file = Language::of(name).is_some() && reads.origin.content;
    is_file
        || others::is_database(name)
        || source::takes_lines(name)
        || source::compiles(name)
        || matches!(name, "ed" | "ex" | "make" | "gmake")
}

/// The program that those are run by which a program runs. A shell adds nothing of its own.
pub(super) fn runs_by_itself(simple: &Simple) -> Option<String> {
    let name = simple.name();
    let is_shell = names::is_shell(name)
        || matches!(
            name,
            "eval" | "exec" | "command" | "builtin" | "source" | "." | "trap" | "alias" | "time"
        );
    if is_shell { simple.by.clone() } else { Some(name.to_owned()) }
}
