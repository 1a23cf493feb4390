//! What `sed` runs and writes: the command `e`, the flag `e` of `s`, and the command `w`.

use super::Inner;
use crate::commands::characters::Characters;
use crate::commands::lexer::has_unknown;
use crate::commands::rules::UNSEEN_CODE;
use crate::commands::simple::Simple;

pub(super) fn run_by(simple: &Simple, inner: &mut Inner) {
    let mut scripts = simple.values('e', "expression");
    if scripts.is_empty() && file(simple).is_none() {
        scripts.extend(simple.operands().next());
    }
    for script in scripts {
        if script.chars().count() == 1 && has_unknown(script) {
            inner.has_unknown_code = true;
        }
        read(script, inner);
    }
}

/// The file that its script is in. The letters behind `-i` are the end of a name.
pub(super) fn file(simple: &Simple) -> Option<&str> {
    let words = simple.arguments();
    words.iter().enumerate().find_map(|(at, word)| {
        let next = || words.get(at + 1).map(String::as_str);
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_file = !name.is_empty() && name != "f" && "file".starts_with(name);
            return is_file.then(|| value.or_else(next)).flatten();
        }
        let letters = word.strip_prefix('-')?;
        let (_, value) = letters.split_once('f').filter(|(before, _)| !before.contains(['i', 'e', 'l']))?;
        if value.is_empty() { next() } else { Some(value) }
    })
}

pub(super) fn read(script: &str, inner: &mut Inner) {
    let mut characters = Characters::new(script);
    while let Some(character) = characters.raw() {
        match character {
            ';' | '\n' | ' ' | '\t' | '{' | '}' | '!' | ',' | '0'..='9' | '$' | '~' | '+' => {}
            '/' => {
                until(&mut characters, '/');
            }
            '\\' => {
                let end = characters.raw().unwrap_or('/');
                until(&mut characters, end);
            }
            's' => substitution(&mut characters, inner),
            'y' => {
                let sign = characters.raw().unwrap_or('/');
                until(&mut characters, sign);
                until(&mut characters, sign);
            }
            'e' => {
                let command = characters.raw_until('\n');
                if command.trim().trim_matches('}').is_empty() {
                    inner.findings.push(UNSEEN_CODE);
                } else {
                    inner.script(&command);
                }
            }
            'w' | 'W' => inner.writes.push(characters.raw_until('\n').trim().to_owned()),
            'r' | 'R' => inner.opens.push(characters.raw_until('\n').trim().to_owned()),
            'a' | 'i' | 'c' | '#' => {
                characters.raw_until('\n');
            }
            'b' | 't' | 'T' | ':' | 'q' | 'Q' | 'l' | 'L' => {
                while characters.raw_if(|next| next != ';' && next != '\n' && next != '}').is_some() {}
            }
            _ => {}
        }
    }
}

/// `s/…/…/flags`.
fn substitution(characters: &mut Characters, inner: &mut Inner) {
    let Some(sign) = characters.raw() else { return };
    until(characters, sign);
    let replacement = until(characters, sign);
    while let Some(flag) = characters.raw_if(|next| next.is_ascii_alphanumeric()) {
        match flag {
            'e' => {
                inner.findings.push(UNSEEN_CODE);
                inner.script(&replacement.replace('\\', ""));
            }
            'w' => inner.writes.push(characters.raw_until('\n').trim().to_owned()),
            _ => {}
        }
    }
}

/// What stands before a sign that no backslash precedes.
fn until(characters: &mut Characters, sign: char) -> String {
    let mut text = String::new();
    while let Some(character) = characters.raw() {
        if character == sign {
            break;
        }
        text.push(character);
        if character == '\\' {
            text.extend(characters.raw());
        }
    }
    text
}
