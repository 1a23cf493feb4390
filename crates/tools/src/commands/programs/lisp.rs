//! Forms of Lisp that start a process or delete directories.

use super::Inner;
use super::tokens::{Piece, pieces};

/// Adds what a form starts or deletes.
pub(super) fn scan(form: &str, inner: &mut Inner) {
    if form.contains("delete-directory") || form.contains("delete-tree") {
        let pieces = pieces(form);
        let paths = pieces.iter().filter_map(Piece::text);
        inner.program(["rm", "-rf"].into_iter().chain(paths));
    }
    let runs = [
        "shell-command",
        "call-process",
        "start-process",
        "(term ",
        "(shell",
        "async-shell-command",
        "run-program",
    ];
    if runs.iter().any(|name| form.contains(name)) {
        let pieces = pieces(form);
        if form.contains("-process") || form.contains("run-program") {
            inner.program(pieces.iter().filter_map(Piece::text));
        }
        for text in pieces.iter().filter_map(Piece::text) {
            inner.script(text);
        }
    }
}
