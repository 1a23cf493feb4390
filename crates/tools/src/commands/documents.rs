//! The texts of here-documents. They come after the line that names them, and belong to the program with the `<<`.

use super::characters::Characters;
use super::lexer::{Lexer, Token};
use super::script::Read;

/// A here-document whose text has yet to come.
pub(super) struct Document {
    /// Which token is its text.
    token: usize,
    ending: Ending,
}

/// How a here-document ends.
pub(super) struct Ending {
    /// The line that does it.
    pub(super) line: String,
    /// Whether the text is taken as it stands.
    pub(super) quoted: bool,
    /// Whether tabs before its lines do not count.
    pub(super) indented: bool,
}

impl Lexer<'_, '_> {
    /// Whether the word that is being read ends a here-document. Nothing is put into it.
    pub(super) fn names_document(&self) -> bool {
        self.redirection().is_some_and(|operator| matches!(split_number(operator).1, "<<" | "<<-"))
    }

    /// Keeps a place for the text of the document that this word ends.
    pub(super) fn expect_document(&mut self, operator: &str, line: String, quoted: bool) {
        let (number, operator) = split_number(operator);
        if number.is_empty() {
            self.position.input(self.tokens.len());
            self.tokens.push(Token::Document(String::new()));
        } else {
            // Under a number it is what a here-string is.
            self.tokens.push(Token::Operator(format!("{number}<<<")));
            self.tokens.push(Token::Word(String::new()));
        }
        let token = self.tokens.len().saturating_sub(1);
        let ending = Ending { line, quoted, indented: operator == "<<-" };
        self.documents.push(Document { token, ending });
    }

    /// Reads the texts that begin here.
    pub(super) fn take_documents(&mut self) -> Read<()> {
        for Document { token, ending } in std::mem::take(&mut self.documents) {
            let mut text = self.document_text(&ending);
            if !ending.quoted {
                let rest = std::mem::replace(&mut self.characters, Characters::new(&text));
                self.inside_quotes(None)?;
                self.characters = rest;
                text = self.word.take().unwrap_or_default();
            }
            if let Some(token) = self.tokens.get_mut(token) {
                *token = match token {
                    Token::Word(_) => Token::Word(text),
                    _ => Token::Document(text),
                };
            }
        }
        Ok(())
    }

    fn document_text(&mut self, ending: &Ending) -> String {
        let mut text = String::new();
        while self.characters.peek_raw().is_some() {
            let (line, _) = self.document_line(ending);
            if line == ending.line {
                break;
            }
            text.push_str(&line);
            text.push('\n');
        }
        text
    }

    /// The next line of a document, and how it stands there.
    pub(super) fn document_line(&mut self, ending: &Ending) -> (String, String) {
        let (mut line, mut raw) = (String::new(), String::new());
        loop {
            let part = self.characters.raw_until('\n');
            let ends = self.characters.raw().is_some();
            line.push_str(&part);
            raw.push_str(&part);
            raw.extend(ends.then_some('\n'));
            // Unless the text is taken as it stands, the end of a line that is joined with the next ends nothing.
            if ending.quoted || !ends || !is_joined(&part) {
                break;
            }
            line.pop();
        }
        let line = if ending.indented { line.trim_start_matches('\t').to_owned() } else { line };
        (line, raw)
    }
}

fn is_joined(line: &str) -> bool {
    line.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
}

/// The number before a redirection, if it is not that of the input, and the redirection.
pub(super) fn split_number(operator: &str) -> (&str, &str) {
    operator.split_at(operator.find(|character: char| !character.is_ascii_digit()).unwrap_or(0))
}
