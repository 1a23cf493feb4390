//! What a shell puts in place of `$…` and backticks, as far as the command itself tells.

use super::characters::Characters;
use super::definitions::is_calculation;
use super::flow::Flow;
use super::lexer::{Lexer, Quotes, UNKNOWN, has_unknown};
use super::script::{Around, MAX_DEPTH, Read, TOO_DEEP};

impl Lexer<'_, '_> {
    pub(super) fn expansion(&mut self, quotes: Quotes) -> Read<()> {
        match self.characters.peek() {
            _ if self.names_document() => self.push('$'),
            Some('\'') if quotes == Quotes::Outside => {
                self.characters.next();
                self.ansi_quotes();
            }
            Some('"') if quotes == Quotes::Outside => {}
            Some('(') => {
                self.characters.next();
                let inner = self.until_closed('(', ')');
                if is_calculation(&inner) {
                    self.expand_within(&inner)?;
                    self.push(UNKNOWN);
                } else {
                    self.substitution(&inner, quotes)?;
                }
            }
            Some('{') => {
                self.characters.next();
                let inner = self.until_closed('{', '}');
                self.braced(&inner, quotes)?;
            }
            Some(sign @ ('@' | '*')) => {
                self.characters.next();
                self.variable(&sign.to_string(), quotes)?;
            }
            Some(next) if next.is_ascii_alphabetic() || next == '_' => {
                let mut name = String::new();
                while let Some(c) =
                    self.characters.next_if(|next| next.is_ascii_alphanumeric() || next == '_')
                {
                    name.push(c);
                }
                self.variable(&name, quotes)?;
            }
            Some(digit) if digit.is_ascii_digit() => {
                self.characters.next();
                self.variable(&digit.to_string(), quotes)?;
            }
            Some(next) if "?$!#-".contains(next) => {
                self.characters.next();
                self.push(UNKNOWN);
            }
            _ => self.push('$'),
        }
        Ok(())
    }

    /// Reads a text as if it stood here.
    pub(super) fn text_instead(&mut self, text: &str, quotes: Quotes) -> Read<()> {
        if self.depth >= MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        self.script.charge(text.len())?;
        self.depth += 1;
        let rest = std::mem::replace(&mut self.characters, Characters::new(text));
        match quotes {
            Quotes::Inside => self.inside_quotes(None)?,
            Quotes::Outside => {
                while let Some(character) = self.characters.next() {
                    match character {
                        ' ' | '\t' | '\r' | '\n' if self.assigns == Some(true) => self.push(character),
                        character => self.part_of_word(character)?,
                    }
                }
            }
        }
        self.characters = rest;
        self.depth -= 1;
        Ok(())
    }

    /// Puts a value here. Outside of quotes the shell splits it into words, except in an assignment.
    pub(super) fn value(&mut self, value: &str, quotes: Quotes) -> Read<()> {
        if quotes == Quotes::Inside || self.assigns == Some(true) {
            self.push_text(value);
            return Ok(());
        }
        let separators = self.scope.get("IFS").unwrap_or_default().to_owned();
        let separates = |character: char| character.is_whitespace() || separators.contains(character);
        for part in value.split_inclusive(separates) {
            let text = part.trim_end_matches(separates);
            if !text.is_empty() {
                self.push_text(text);
            }
            if text.len() < part.len() {
                self.end_word()?;
            }
        }
        Ok(())
    }

    pub(super) fn backticks(&mut self, quotes: Quotes) -> Read<()> {
        if self.names_document() {
            self.push('`');
            return Ok(());
        }
        let mut inner = String::new();
        while let Some(character) = self.characters.raw() {
            match character {
                '`' => return self.substitution(&inner, quotes),
                '\\' => match self.characters.raw() {
                    Some(escaped @ ('$' | '`' | '\\')) => inner.push(escaped),
                    Some('"') if quotes == Quotes::Inside => inner.push('"'),
                    other => inner.extend(std::iter::once('\\').chain(other)),
                },
                character => inner.push(character),
            }
        }
        self.unfinished = true;
        self.substitution(&inner, quotes)
    }

    /// A command whose output becomes part of the word.
    fn substitution(&mut self, inner: &str, quotes: Quotes) -> Read<()> {
        let prints = self.inner(inner)?;
        self.script.charge(prints.len())?;
        if has_unknown(&prints.text) {
            self.unknown = self.unknown | prints.origin;
        }
        self.value(prints.text.trim_end_matches('\n'), quotes)
    }

    /// Reads a command within this one. Returns what it prints.
    pub(super) fn inner(&mut self, inner: &str) -> Read<Flow> {
        let around = Around { depth: self.depth + 1, scope: Some(&self.scope), ..Around::default() };
        self.script.add(inner, around)
    }

    /// `$'…'`, in which bytes can be written as numbers.
    fn ansi_quotes(&mut self) {
        self.quoted = true;
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.raw() {
            match character {
                '\'' => return,
                '\\' => {
                    let escaped = super::escapes::escaped(&mut self.characters);
                    self.push(escaped);
                }
                character => self.push(character),
            }
        }
        self.unfinished = true;
    }
}
