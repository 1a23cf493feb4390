//! What a shell puts in place of `$…` and backticks, as far as the command itself tells.

use super::characters::Characters;
use super::flow::Flow;
use super::lexer::{Lexer, Quotes, UNKNOWN, is_name};
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
                self.substitution(&inner, quotes)?;
            }
            Some('{') => {
                self.characters.next();
                let inner = self.until_closed('{', '}');
                self.braced(&inner, quotes)?;
            }
            Some('@' | '*') => {
                // There are no arguments.
                self.characters.next();
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
            Some(next) if next.is_ascii_digit() || "?$!#-".contains(next) => {
                self.characters.next();
                self.push(UNKNOWN);
            }
            _ => self.push('$'),
        }
        Ok(())
    }

    /// `${…}`. Of a variable that the command has not set, the text given for that case is taken.
    fn braced(&mut self, inner: &str, quotes: Quotes) -> Read<()> {
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, rest) = inner.split_at(end);
        let instead = [":-", ":=", ":+", "-", "=", "+"].into_iter().find_map(|sign| rest.strip_prefix(sign));
        match instead {
            Some(instead) if is_name(name) => {
                let is_set = self.scope.get(name).is_some() && !rest.trim_start_matches(':').starts_with('+');
                if is_set { self.variable(name, quotes) } else { self.text_instead(instead, quotes) }
            }
            _ => self.variable(inner, quotes),
        }
    }

    /// Reads a text as if it stood here.
    fn text_instead(&mut self, text: &str, quotes: Quotes) -> Read<()> {
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

    fn variable(&mut self, name: &str, quotes: Quotes) -> Read<()> {
        if name == "IFS" {
            self.value(" ", quotes)?;
        } else if name == "HOME" {
            self.push('~');
        } else if let Some(value) = self.scope.get(name) {
            self.script.charge(value.len())?;
            let value = value.to_owned();
            self.value(&value, quotes)?;
        } else {
            self.push(UNKNOWN);
        }
        Ok(())
    }

    /// Puts a value here. Outside of quotes the shell splits it into words, except in an assignment.
    fn value(&mut self, value: &str, quotes: Quotes) -> Read<()> {
        if quotes == Quotes::Inside || self.assigns == Some(true) {
            self.push_text(value);
            return Ok(());
        }
        for part in value.split_inclusive(char::is_whitespace) {
            let text = part.trim_end_matches(char::is_whitespace);
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
                '`' => break,
                '\\' => match self.characters.raw() {
                    Some(escaped @ ('$' | '`' | '\\')) => inner.push(escaped),
                    Some('"') if quotes == Quotes::Inside => inner.push('"'),
                    other => inner.extend(std::iter::once('\\').chain(other)),
                },
                character => inner.push(character),
            }
        }
        self.substitution(&inner, quotes)
    }

    /// A command whose output becomes part of the word.
    fn substitution(&mut self, inner: &str, quotes: Quotes) -> Read<()> {
        let prints = self.inner(inner)?;
        self.script.charge(prints.len())?;
        if prints.text.contains(UNKNOWN) {
            self.unknown = self.unknown | prints.origin;
        }
        self.value(prints.text.trim_end_matches('\n'), quotes)
    }

    /// Reads a command within this one. Returns what it prints.
    pub(super) fn inner(&mut self, inner: &str) -> Read<Flow> {
        let around = Around { depth: self.depth + 1, scope: Some(&self.scope), reads: None };
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
    }
}
