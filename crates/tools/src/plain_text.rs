//! What a terminal would show, as plain text.

/// Takes out escape sequences and control characters; what a carriage return overwrites is gone.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => skip_escape(&mut characters),
            '\r' if characters.peek() == Some(&'\n') => {}
            '\r' => plain.truncate(plain.rfind('\n').map_or(0, |end| end + 1)),
            '\x08' if !plain.ends_with('\n') => drop(plain.pop()),
            '\n' | '\t' => plain.push(character),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain
}

fn skip_escape(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        // A control sequence ends with a letter or one of a few signs.
        Some('[') => drop(characters.find(|character| ('\x40'..='\x7e').contains(character))),
        // A string ends with a bell, or an escape and a backslash.
        Some(']' | 'P' | '^' | '_') => {
            while let Some(character) = characters.next() {
                if character == '\x07' || character == '\x1b' && characters.next_if_eq(&'\\').is_some() {
                    break;
                }
            }
        }
        Some('(' | ')' | '#') => drop(characters.next()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn only_what_is_seen_stays() {
        assert_eq!(plain("\x1b[1;31mred\x1b[0m\r\nnext\ttab"), "red\nnext\ttab");
        assert_eq!(plain("\x1b]0;title\x07text\x1b]8;;x\x1b\\link"), "textlink");
        assert_eq!(plain("line\n10 %\r50 %\rdone"), "line\ndone");
        assert_eq!(plain("ab\x08c\x00\x01"), "ac");
        assert_eq!(plain("\x1b["), "");
    }
}
