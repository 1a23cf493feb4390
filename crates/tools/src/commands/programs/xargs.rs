//! Programs that run another for each of many words: `xargs`, `parallel`, `find` and `fd`.

use super::{Inner, wrapper_options};
use crate::commands::flow::Flow;
use crate::commands::lexer::{UNKNOWN, has_unknown};
use crate::commands::options::{Options, Shape};
use crate::commands::simple::Simple;

/// What `xargs` runs, with what it reads as words.
pub(super) fn run_by(simple: &Simple, reads: Option<&Flow>, inner: &mut Inner) {
    let Some(options) = wrapper_options(simple) else { return };
    let mut words: Vec<String> = options.words.iter().map(|&word| word.to_owned()).collect();
    if words.is_empty() {
        return;
    }
    let unknown = UNKNOWN.to_string();
    let text =
        reads.filter(|flow| !flow.is_all_unknown()).map_or(unknown.as_str(), |flow| flow.text.as_str());
    let usual = || (options.has("i") || options.has_long("replace")).then_some("{}");
    match options.value('I', "replace").or_else(usual).filter(|place| !place.is_empty()) {
        Some(place) => {
            // Once is enough to see what it does.
            if let Some(word) = words.iter_mut().find(|word| word.contains(place)) {
                *word = word.replacen(place, text.trim(), 1);
            }
        }
        None if options.has("0") || options.has_long("null") => {
            words.extend(
                text.trim_end().split(['\0', '\n']).filter(|word| !word.is_empty()).map(str::to_owned),
            );
        }
        None if simple.says("/dev/null") => {}
        None => words.extend(text.split_whitespace().map(str::to_owned)),
    }
    inner.programs.push(words);
}

/// What `parallel` runs: a command and the words behind `:::`, or those that it reads.
pub(super) fn run_by_parallel(simple: &Simple, reads: Option<&Flow>, inner: &mut Inner) {
    let shape =
        Shape::new("jnNLIaPSdC", &["jobs", "arg-file", "delay", "timeout", "joblog", "results", "max-args"]);
    let options = Options::of(simple, shape);
    let is_separator = |word: &&str| word.starts_with(":::");
    let command: Vec<&str> = options.words.iter().copied().take_while(|word| !is_separator(word)).collect();
    let given: Vec<&str> =
        options.words.iter().copied().skip_while(|word| !is_separator(word)).skip(1).collect();
    let known = reads.filter(|flow| !flow.is_all_unknown()).map(|flow| flow.text.trim().to_owned());
    let values =
        if given.is_empty() { known.unwrap_or_else(|| UNKNOWN.to_string()) } else { given.join(" ") };
    if command.is_empty() {
        given.iter().for_each(|text| inner.script(text));
        if options.value('a', "arg-file").is_some() {
            reads.into_iter().for_each(|flow| inner.script(&flow.text));
        }
        // The lines of a file are the commands.
        inner.has_unknown_code |=
            given.is_empty() && reads.is_some_and(|flow| !flow.unknown && has_unknown(&flow.text));
        return;
    }
    let command = command.join(" ");
    let text =
        if command.contains('{') { command.replace("{}", &values) } else { format!("{command} {values}") };
    inner.script(&text);
}

/// What `find` runs.
pub(super) fn run_by_find(simple: &Simple, inner: &mut Inner) {
    let runs = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    for words in simple.words.split(runs).skip(1) {
        inner.program(words.iter().map(String::as_str).take_while(|word| *word != ";" && *word != "+"));
    }
    for (at, word) in simple.words.iter().enumerate() {
        if matches!(word.as_str(), "-fprintf" | "-fprint" | "-fls" | "-fprint0") {
            inner.writes.extend(simple.words.get(at + 1).cloned());
        }
    }
}

/// What `fd` runs.
pub(super) fn run_by_fd(simple: &Simple, inner: &mut Inner) {
    let runs = |word: &String| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    for words in simple.words.split(runs).skip(1) {
        inner.program(words.iter().map(String::as_str).take_while(|word| *word != ";"));
    }
}
