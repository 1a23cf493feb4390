//! What `awk` runs: `system(…)` and pipes to and from commands.

use super::Inner;
use super::tokens::{Piece, pieces};
use crate::commands::finding;
use crate::commands::lexer::has_unknown;
use crate::commands::options::{Options, Shape};
use crate::commands::rules::UNSEEN_CODE;
use crate::commands::simple::Simple;

fn options(simple: &Simple) -> Options<'_> {
    let long = &["file", "source", "assign", "field-separator", "include"];
    Options::of(simple, Shape::new("Fvfeil", long))
}

/// The file that its program is in.
pub(super) fn file(simple: &Simple) -> Option<&str> {
    options(simple).value('f', "file")
}

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let options = options(simple);
    let by_option = options.value('e', "source");
    let elsewhere = by_option.is_some() || file(simple).is_some();
    let program = options.words.first().copied().filter(|_| !elsewhere);
    for program in by_option.into_iter().chain(program) {
        if program.chars().count() == 1 && has_unknown(program) {
            inner.has_unknown_code = true;
        }
        read(program, inner);
    }
}

pub(super) fn read(program: &str, inner: &mut Inner) {
    if program.contains("/inet/") || program.contains("/inet4/") {
        inner.findings.push(finding("reverse_shell", "connects a shell to the network"));
    }
    let pieces = pieces(program);
    let literals = || pieces.iter().filter_map(Piece::text);
    for (at, piece) in pieces.iter().enumerate() {
        let next = pieces.get(at + 1);
        let before = at.checked_sub(1).and_then(|at| pieces.get(at));
        let unknown = match piece {
            Piece::Name(name) if name == "system" && next.is_some_and(|next| next.is('(')) => {
                let argument = pieces.get(at + 2);
                match argument.and_then(Piece::text) {
                    Some(_) => {
                        // Texts beside each other are one.
                        let texts = pieces.get(at + 2..).unwrap_or_default().iter().map_while(Piece::text);
                        inner.script(&texts.collect::<String>());
                        false
                    }
                    // `system()` alone only writes what waits to be written.
                    None => !argument.is_some_and(|argument| argument.is(')')),
                }
            }
            Piece::Sign('|') if before.is_some_and(|before| before.is('|')) => false,
            Piece::Sign('|') if next.is_some_and(|next| next.is('|')) => false,
            Piece::Sign('|') if prints_script(&pieces, at, inner) => false,
            Piece::Sign('|') => pipe(before, next.filter(|next| !next.is('&')).or(pieces.get(at + 2)), inner),
            Piece::Sign('>') => {
                inner.writes.extend(next.and_then(Piece::text).map(str::to_owned));
                false
            }
            _ => false,
        };
        if unknown && !inner.findings.contains(&UNSEEN_CODE) {
            inner.findings.push(UNSEEN_CODE);
            literals().for_each(|text| inner.script(text));
        }
    }
}

/// `print "…" | "sh"`. Returns whether it is that.
fn prints_script(pieces: &[Piece], at: usize, inner: &mut Inner) -> bool {
    let text = |at: Option<usize>| at.and_then(|at| pieces.get(at)).and_then(Piece::text);
    let print = at.checked_sub(2).and_then(|at| pieces.get(at)).and_then(Piece::name);
    let (Some(printed), Some(shell), Some("print" | "printf")) =
        (text(at.checked_sub(1)), text(Some(at + 1)).or_else(|| text(Some(at + 2))), print)
    else {
        return false;
    };
    inner.script(&format!("echo '{}' | {shell}", printed.replace('\'', "'\\''")));
    true
}

/// A pipe to or from a command. Returns whether nobody can see which.
fn pipe(before: Option<&Piece>, after: Option<&Piece>, inner: &mut Inner) -> bool {
    let reads = matches!(after, Some(Piece::Name(name)) if name == "getline");
    let command = if reads { before } else { after };
    match command.and_then(Piece::text) {
        Some(text) => {
            inner.script(text);
            false
        }
        None => true,
    }
}
