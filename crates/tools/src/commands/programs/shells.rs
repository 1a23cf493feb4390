//! The scripts that shells are given, and words of the shell itself that run something.

use super::{Inner, Passed};
use crate::commands::options::{Options, Shape, Value};
use crate::commands::simple::Simple;

const SHELL: Shape = Shape { value: Value::NextWord, ..Shape::new("oO", &["rcfile", "init-file"]) };
/// Shells in which the name of an option may be in the same word.
const OTHER_SHELL: Shape = Shape::new("oO", &["rcfile", "init-command"]);

pub(super) fn options(simple: &Simple) -> Options<'_> {
    let attaches = matches!(simple.name(), "zsh" | "ksh" | "fish");
    Options::of(simple, if attaches { OTHER_SHELL } else { SHELL })
}

/// The script that a shell is given with `-c`, with its name and arguments.
pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let options = options(simple);
    for file in simple.values('\0', "rcfile").into_iter().chain(simple.values('\0', "init-file")) {
        inner.program([".", file]);
    }
    if matches!(simple.name(), "fish") {
        simple.values('C', "init-command").into_iter().for_each(|text| inner.script(text));
    }
    if !options.has("c") {
        return;
    }
    if let Some((text, arguments)) = options.words.split_first() {
        let arguments = arguments.iter().map(|&word| word.to_owned()).collect();
        inner.scripts.push(Passed { text: (*text).to_owned(), arguments: Some(arguments) });
    }
}

/// The arguments that a script gets which a shell runs from a file.
pub(super) fn arguments(simple: &Simple) -> Vec<String> {
    let is_shell = crate::commands::names::is_shell(simple.name());
    let options = options(simple);
    // Behind `-s` all words are arguments.
    let skipped = usize::from(!options.has("s"));
    let words = if is_shell { options.words } else { Vec::new() };
    let own = || simple.arguments().to_vec();
    if is_shell { words.iter().skip(skipped).map(|&word| word.to_owned()).collect() } else { own() }
}

/// What `eval` runs. Settings that a program prints for it, such as `ssh-agent -s`, are what they are for.
pub(super) fn evaluated(simple: &Simple, inner: &mut Inner) {
    let words = simple.arguments().iter().map(String::as_str).skip_while(|word| *word == "--");
    let text = words.collect::<Vec<_>>().join(" ");
    if !simple.within.settings || simple.within.downloaded {
        inner.script(&text);
    }
}

/// What `trap` and `alias` keep for later.
pub(super) fn deferred(simple: &Simple, inner: &mut Inner) {
    if simple.name() == "trap" {
        inner.script(simple.operand(0));
    } else {
        for (_, text) in simple.operands().filter_map(|word| word.split_once('=')) {
            inner.script(text);
        }
    }
}
