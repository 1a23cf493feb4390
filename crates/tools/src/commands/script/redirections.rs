//! A program with its redirections while it is read, and what groups read.

use std::collections::BTreeMap;

use crate::commands::lexer::Token;

/// One program while it is read.
#[derive(Default)]
pub(super) struct Parsed {
    pub(super) words: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) reads: Option<Input>,
    pub(super) redirect: Option<String>,
    /// What it opens for reading besides its input, each with its number.
    pub(super) numbered: Vec<(String, Input)>,
    /// The number of an open file that becomes its input: `<&3`.
    pub(super) reads_number: Option<String>,
}

pub(super) enum Input {
    Text(String),
    File(String),
}

/// By the token that opens a group, what the group reads.
pub(super) fn inputs_of_groups(tokens: &[Token], inputs: &BTreeMap<usize, usize>) -> BTreeMap<usize, Input> {
    let input = |at: usize| match (tokens.get(at.checked_sub(1)?)?, tokens.get(at)?) {
        (Token::Operator(operator), Token::Word(path)) if operator == "<" => Some(Input::File(path.clone())),
        (_, Token::Word(text) | Token::Document(text)) => Some(Input::Text(text.clone())),
        _ => None,
    };
    inputs.iter().filter_map(|(group, at)| Some((*group, input(*at)?))).collect()
}

impl Parsed {
    pub(super) fn word(&mut self, word: String) {
        match self.redirect.take().as_deref() {
            Some("<<<") => self.reads = Some(Input::Text(word)),
            Some("<") => self.reads = Some(Input::File(word)),
            Some("<&") => self.reads_number = Some(word),
            Some(operator) if operator.contains('>') => self.writes.push(word),
            Some(operator) => self.numbered.extend(numbered(operator, word)),
            None => self.words.push(word),
        }
    }
}

/// `3<<< text` and `3< file`.
fn numbered(operator: &str, word: String) -> Option<(String, Input)> {
    let sign = operator.trim_start_matches(|character: char| character.is_ascii_digit());
    let number = operator.strip_suffix(sign).filter(|number| !number.is_empty())?.to_owned();
    match sign {
        "<<<" => Some((number, Input::Text(word))),
        "<" => Some((number, Input::File(word))),
        _ => None,
    }
}
