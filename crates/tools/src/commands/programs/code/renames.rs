//! The names that code gives to functions of other names.

use std::collections::BTreeMap;

use super::Language;
use super::functions::is_of_interest;
use crate::commands::programs::tokens::Piece;

/// Functions that matter, by the names that the code gives them: `from shutil import rmtree as r`, `s = os.system`.
pub(super) fn renames(language: Language, pieces: &[Piece]) -> BTreeMap<String, String> {
    let mut renames = BTreeMap::new();
    for (at, window) in pieces.windows(3).enumerate() {
        let (name, function) = match window {
            [Piece::Name(function), Piece::Name(word), Piece::Name(name)] if word == "as" => {
                (name, Some(function))
            }
            // `const { rmSync: r } = require("fs")`
            [Piece::Name(function), Piece::Sign(':'), Piece::Name(name)]
                if language == Language::Javascript =>
            {
                (name, Some(function))
            }
            [Piece::Name(name), Piece::Sign('='), Piece::Name(_)] => {
                (name, member(pieces.get(at + 2..).unwrap_or_default()))
            }
            _ => continue,
        };
        if let Some(function) = function.filter(|function| is_of_interest(function)) {
            renames.insert(name.clone(), function.clone());
        }
    }
    renames
}

/// The last name of `os.system` or `require("fs").rmSync`, if it is not called.
fn member(mut pieces: &[Piece]) -> Option<&String> {
    loop {
        match pieces {
            [Piece::Name(_), Piece::Sign('.'), after @ ..]
            | [
                Piece::Name(_),
                Piece::Sign('('),
                Piece::Text(_),
                Piece::Sign(')'),
                Piece::Sign('.'),
                after @ ..,
            ] => pieces = after,
            [Piece::Name(_), Piece::Sign('('), ..] => return None,
            [Piece::Name(name), ..] => return Some(name),
            _ => return None,
        }
    }
}
