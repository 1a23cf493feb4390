//! Splits code of other languages into names, texts and signs, as far as their common ground goes.

use crate::commands::characters::Characters;
use crate::commands::escapes;

/// A piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) enum Piece {
    /// A name or a number.
    Name(String),
    /// A text in quotes.
    Text(String),
    /// A text that a shell runs: in backticks, `qx{…}` or `%x(…)`.
    Command(String),
    /// Words in `qw(…)` or `%w(…)`.
    Words(Vec<String>),
    Sign(char),
}

impl Piece {
    /// What is in its quotes.
    pub(in crate::commands) fn text(&self) -> Option<&str> {
        match self {
            Piece::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(in crate::commands) fn is(&self, sign: char) -> bool {
        *self == Piece::Sign(sign)
    }

    pub(in crate::commands) fn name(&self) -> Option<&str> {
        match self {
            Piece::Name(name) => Some(name),
            _ => None,
        }
    }
}

/// The pieces of a program.
pub(in crate::commands) fn pieces(code: &str) -> Vec<Piece> {
    let mut characters = Characters::new(code);
    let mut pieces = Vec::new();
    while let Some(character) = characters.raw() {
        match character {
            '\'' | '"' => pieces.push(Piece::Text(quoted(&mut characters, character))),
            '`' => pieces.push(Piece::Command(quoted(&mut characters, '`'))),
            '#' if characters.before_last().is_none_or(char::is_whitespace) => {
                characters.raw_until('\n');
            }
            '%' if matches!(characters.peek_raw(), Some('x' | 'w' | 'q' | 'Q')) => {
                let kind = characters.raw().unwrap_or('q');
                pieces.push(with_brackets(&mut characters, kind).unwrap_or(Piece::Sign('%')));
            }
            character if character.is_ascii_alphanumeric() || character == '_' => {
                let name = name(&mut characters, character);
                pieces.push(quote_like(&name, &mut characters).unwrap_or(Piece::Name(name)));
            }
            '\n' => pieces.push(Piece::Sign(';')),
            character if character.is_whitespace() => {}
            character => pieces.push(Piece::Sign(character)),
        }
    }
    pieces
}

fn name(characters: &mut Characters, first: char) -> String {
    let mut name = String::from(first);
    while let Some(next) = characters.raw_if(|next| next.is_ascii_alphanumeric() || next == '_') {
        name.push(next);
    }
    name
}

/// `qw(…)` and its like, of Perl.
fn quote_like(name: &str, characters: &mut Characters) -> Option<Piece> {
    let kind = match name {
        "q" | "qq" => 'q',
        "qw" => 'w',
        "qx" => 'x',
        _ => return None,
    };
    let place = characters.place();
    while characters.raw_if(char::is_whitespace).is_some() {}
    let piece = characters
        .peek_raw()
        .filter(|next| "({[</|!".contains(*next))
        .and_then(|_| with_brackets(characters, kind));
    if piece.is_none() {
        characters.go_back(place);
    }
    piece
}

/// A text between brackets or two equal signs.
fn with_brackets(characters: &mut Characters, kind: char) -> Option<Piece> {
    let opens = characters.raw_if(|next| !next.is_alphanumeric() && !next.is_whitespace())?;
    let closes = match opens {
        '(' => ')',
        '{' => '}',
        '[' => ']',
        '<' => '>',
        other => other,
    };
    let text = quoted(characters, closes);
    Some(match kind {
        'w' => Piece::Words(text.split_whitespace().map(str::to_owned).collect()),
        'x' => Piece::Command(text),
        _ => Piece::Text(text),
    })
}

/// A text up to the sign that ends it, three of them if it began with three.
fn quoted(characters: &mut Characters, end: char) -> String {
    let place = characters.place();
    let tripled = matches!(end, '\'' | '"') && characters.raw() == Some(end) && characters.raw() == Some(end);
    if !tripled {
        characters.go_back(place);
    }
    let mut text = String::new();
    while let Some(character) = characters.raw() {
        if character == '\\' {
            text.push(escapes::escaped(characters));
        } else if character != end {
            text.push(character);
        } else if !tripled {
            break;
        } else {
            let place = characters.place();
            if characters.raw() == Some(end) && characters.raw() == Some(end) {
                break;
            }
            characters.go_back(place);
            text.push(character);
        }
    }
    text
}
