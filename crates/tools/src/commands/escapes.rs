//! Backslashes of `$'…'`, `printf` and `echo -e`.

use super::characters::Characters;
use super::lexer::UNKNOWN;

/// A text with its escapes resolved.
pub(super) fn unescaped(text: &str) -> String {
    let mut characters = Characters::new(text);
    let mut unescaped = String::with_capacity(text.len());
    while let Some(character) = characters.raw() {
        unescaped.push(if character == '\\' { escaped(&mut characters) } else { character });
    }
    unescaped
}

/// What stands behind a backslash.
pub(super) fn escaped(characters: &mut Characters) -> char {
    let (radix, most) = match characters.raw() {
        Some('x') => (16, 2),
        Some('u') => (16, 4),
        Some('U') => (16, 8),
        Some('n') => return '\n',
        Some('t') => return '\t',
        // `printf` and `echo` write a zero before three digits.
        Some('0') => (8, 3),
        Some(octal @ '1'..='7') => return number(characters, 8, 2, octal.to_digit(8).unwrap_or_default()),
        Some(other) => return other,
        None => return '\\',
    };
    number(characters, radix, most, 0)
}

fn number(characters: &mut Characters, radix: u32, most: usize, mut value: u32) -> char {
    for _ in 0..most {
        let Some(digit) = characters.peek_raw().and_then(|next| next.to_digit(radix)) else { break };
        value = value.wrapping_mul(radix).wrapping_add(digit);
        characters.raw();
    }
    char::from_u32(value).unwrap_or(UNKNOWN)
}
