//! The arguments of a call, as far as they are written out.

use super::{Language, Scan};
use crate::commands::lexer::UNKNOWN;
use crate::commands::programs::tokens::Piece;

/// An argument of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Argument {
    Text(String),
    List(Vec<String>),
    /// Something that only the running program knows.
    Unknown,
}

impl Scan<'_> {
    /// The pieces of the arguments of a call whose name is here, if it is a call.
    pub(super) fn arguments_at(&self, at: usize) -> Option<&[Piece]> {
        let rest = self.pieces.get(at + 1..)?;
        if rest.first().is_some_and(|piece| piece.is('(')) {
            let end = closing(rest);
            return rest.get(1..end);
        }
        // `system "ls"` of Perl and Ruby.
        let calls_plainly = matches!(
            self.language,
            Language::Perl | Language::Ruby | Language::Tcl | Language::Php | Language::Lua
        );
        let begins = matches!(
            rest.first(),
            Some(
                Piece::Text(_)
                    | Piece::Words(_)
                    | Piece::Command(_)
                    | Piece::Name(_)
                    | Piece::Sign('$' | '@' | '[')
            )
        ) || self.is_negative(at)
            || self.language == Language::Perl && rest.first().is_some_and(|piece| piece.is('{'));
        if !calls_plainly || !begins {
            return None;
        }
        let end = rest.iter().position(|piece| piece.is(';') || piece.is('}')).unwrap_or(rest.len());
        rest.get(..end)
    }

    /// `kill -9, …`: a number below zero is an argument too.
    fn is_negative(&self, at: usize) -> bool {
        let next = |behind: usize| self.pieces.get(at + behind);
        let is_number =
            |piece: &Piece| piece.name().is_some_and(|name| name.chars().all(|digit| digit.is_ascii_digit()));
        next(0).and_then(Piece::name) == Some("kill")
            && next(1).is_some_and(|piece| piece.is('-'))
            && next(2).is_some_and(is_number)
    }

    /// The arguments among these pieces.
    pub(super) fn values(&self, pieces: &[Piece]) -> Vec<Argument> {
        let (mut depth, mut start, mut values) = (0_i32, 0, Vec::new());
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Sign('(' | '[' | '{') => depth += 1,
                Piece::Sign(')' | ']' | '}') => depth -= 1,
                Piece::Sign(',') if depth == 0 => {
                    values.extend(self.value(pieces.get(start..at).unwrap_or_default()));
                    start = at + 1;
                }
                _ => {}
            }
        }
        values.extend(self.value(pieces.get(start..).unwrap_or_default()));
        values
    }

    /// One argument. Options by name, such as `shell=True`, are none.
    fn value(&self, pieces: &[Piece]) -> Option<Argument> {
        match pieces {
            [] => None,
            [Piece::Name(name), Piece::Sign('='), rest @ ..]
                if !rest.first().is_some_and(|piece| piece.is('=')) =>
            {
                matches!(name.as_str(), "args" | "cmd" | "command").then(|| self.value(rest)).flatten()
            }
            [Piece::Words(words), ..] => Some(Argument::List(words.clone())),
            [Piece::Command(text)] => Some(Argument::Text(text.clone())),
            [Piece::Sign('['), rest @ ..] => Some(Argument::List(items(rest))),
            [Piece::Sign('('), rest @ ..] if rest.iter().any(|piece| piece.is(',')) => {
                Some(Argument::List(items(rest)))
            }
            [Piece::Sign('{'), rest @ ..] => {
                let list = rest.iter().position(|piece| piece.is('['))?;
                rest.iter()
                    .any(|piece| piece.name() == Some("args"))
                    .then(|| Argument::List(items(rest.get(list + 1..).unwrap_or_default())))
            }
            [Piece::Name(name)] => Some(self.variable(name)),
            [Piece::Sign('$' | '@'), Piece::Name(name)] => Some(self.variable(name)),
            pieces => Some(joined(pieces)),
        }
    }

    /// What a variable is set to, if it is written out.
    fn variable(&self, name: &str) -> Argument {
        for (at, window) in self.pieces.windows(3).enumerate() {
            if let [Piece::Name(other), Piece::Sign('='), next] = window
                && other == name
            {
                let after = self.pieces.get(at + 3).and_then(Piece::text);
                return match next {
                    Piece::Text(text) => Argument::Text(text.clone()),
                    // Letters before a text say how it is written.
                    Piece::Name(name) if name.len() <= 2 && after.is_some() => {
                        Argument::Text(after.unwrap_or_default().to_owned())
                    }
                    Piece::Sign('[') => Argument::List(items(self.pieces.get(at + 3..).unwrap_or_default())),
                    Piece::Words(words) => Argument::List(words.clone()),
                    _ => Argument::Unknown,
                };
            }
        }
        Argument::Unknown
    }
}

/// Where the bracket closes with which these pieces begin.
fn closing(pieces: &[Piece]) -> usize {
    let mut depth = 0_i32;
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Sign('(' | '[' | '{') => depth += 1,
            Piece::Sign(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    pieces.len()
}

/// The texts of a list, up to its end. What is not written out is not known.
fn items(pieces: &[Piece]) -> Vec<String> {
    let mut items = Vec::new();
    for piece in pieces.iter().take_while(|piece| !piece.is(']') && !piece.is(')')) {
        match piece {
            Piece::Text(text) => items.push(text.clone()),
            Piece::Words(words) => items.extend(words.iter().cloned()),
            Piece::Name(name) if name.len() > 2 => items.push(UNKNOWN.to_string()),
            _ => {}
        }
    }
    items
}

/// Texts that are put together.
fn joined(pieces: &[Piece]) -> Argument {
    let mut text = String::new();
    let (mut known, joins_paths) = (false, pieces.iter().any(|piece| piece.name() == Some("join")));
    for (at, piece) in pieces.iter().enumerate() {
        let is_method = at.checked_sub(1).and_then(|at| pieces.get(at)).is_some_and(|before| before.is('.'));
        match piece {
            // The home directory has a name of its own in each language.
            Piece::Name(name) if matches!(name.as_str(), "homedir" | "home") && !known => {
                text.push('~');
                known = true;
            }
            Piece::Text(part) if part == "HOME" && pieces.len() > 1 => {
                text.push('~');
                known = true;
            }
            Piece::Text(part) | Piece::Command(part) => {
                if joins_paths && !text.is_empty() {
                    text.push('/');
                }
                text.push_str(part);
                known = true;
            }
            // Letters before a text say how it is written.
            Piece::Name(name) if known && name.len() > 2 && !is_method => text.push(UNKNOWN),
            _ => {}
        }
    }
    if known { Argument::Text(text) } else { Argument::Unknown }
}
