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
            Some(operator) if operator.contains('>') => self.writes.push(word),
            Some(_) => {}
            None => self.words.push(word),
        }
    }
}
