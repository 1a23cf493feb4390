//! Commands in the arguments of programs that nobody knows: `prog -e 'system("rm -rf x")'`, `prog --hook='!reboot'`.

use super::Inner;
use super::tokens::{Piece, pieces};
use crate::commands::names;

/// How many words and texts are looked at.
const MOST: usize = 50;
/// The longest word that is looked into.
const LONGEST: usize = 10_000;
/// What many programs put before the command of a shell.
const SIGNS: [&str; 12] = [
    "!",
    "platform shell ",
    "shell ",
    "system ",
    "exec ",
    "execute ",
    "sh(",
    "syscmd(",
    "esyscmd(",
    "|",
    "- ",
    "`",
];

/// Adds the texts among these words that a shell would take for a program that destroys something or runs others. The
/// first word of a text decides, so that prose in which such a name occurs stays prose.
pub(super) fn run_in<'w>(words: impl IntoIterator<Item = &'w str>, inner: &mut Inner) {
    for word in words.into_iter().take(MOST).filter(|word| word.len() <= LONGEST) {
        if let Some(command) = command_in(word, Place::Word) {
            inner.script(command);
            continue;
        }
        let pieces = pieces(word);
        let texts = pieces.iter().filter_map(Piece::text).take(MOST);
        texts.filter_map(|text| command_in(text, Place::Code)).for_each(|text| inner.script(text));
    }
}

/// Adds the texts of code that a shell would take for such a program.
pub(super) fn run_in_code(texts: &[&str], inner: &mut Inner) {
    let texts = texts.iter().take(MOST).filter_map(|text| command_in(text, Place::Code));
    texts.for_each(|text| inner.script(text));
}

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is a whole word, which may be prose: `-k "shutdown and not slow"`.
    Word,
    /// It is in quotes within code, or behind a sign for a command.
    Code,
}

/// The command that a text is, without the signs before it.
fn command_in(text: &str, place: Place) -> Option<&str> {
    let value = text.split_once('=').map_or(text, |(_, value)| value);
    let setting = text.split_once(": ").map_or(text, |(_, value)| value);
    [text, value, setting].into_iter().find_map(|text| {
        let mut command = text.trim_start_matches(|c: char| c.is_whitespace() || c == ':');
        let mut place = place;
        while let Some(rest) = SIGNS.iter().find_map(|sign| command.strip_prefix(sign)) {
            (command, place) = (rest.trim_start(), Place::Code);
        }
        let name = command.split(char::is_whitespace).next().unwrap_or(command).trim_end_matches(')');
        let name = name.rsplit('/').next().unwrap_or(name);
        let stops = matches!(name, "reboot" | "shutdown" | "halt" | "poweroff" | "init");
        let runs = names::is_dangerous(name) || name.starts_with("mkfs.") || names::is_shell(name);
        let has_words = command.trim_end().contains(char::is_whitespace);
        let found = match place {
            Place::Word => runs && has_words && !stops,
            Place::Code => runs && (has_words || stops),
        };
        found.then(|| command.trim_end_matches([')', '\'', '`']))
    })
}
