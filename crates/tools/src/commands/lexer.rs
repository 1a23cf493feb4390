//! Splits a shell command into words and operators, with quotes and escapes resolved. What stands behind a `$` is in
//! [`expansion`](super::expansion).

use std::iter::Peekable;
use std::vec::IntoIter;

use super::flow::Origin;
use super::scope::Scope;
use super::script::{Around, Read, Script};

/// Stands for what only a running shell knows.
pub(super) const UNKNOWN: char = '\u{fffc}';

/// A piece of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Operator(String),
    /// The text of a here-document, which belongs to the command before.
    Document(String),
}

/// What a command is made of.
#[derive(Debug)]
pub(super) struct Lexed<'v> {
    pub(super) tokens: Vec<Token>,
    /// The variables that it sets.
    pub(super) scope: Scope<'v>,
    /// Where the parts of it come from that only a running shell knows.
    pub(super) unknown: Origin,
}

/// Splits a command. The commands within it (`$(…)`, backticks, `<(…)`) are added to the script.
pub(super) fn lex<'v>(script: &mut Script, text: &str, around: &Around<'v>) -> Read<Lexed<'v>> {
    let text = text.replace('\0', "").replace("\\\r\n", "").replace("\\\n", "");
    let mut lexer = Lexer {
        characters: characters(&text),
        script,
        depth: around.depth,
        tokens: Vec::new(),
        unknown: Origin::default(),
        word: None,
        quoted: false,
        scope: Scope::within(around.scope),
        documents: Vec::new(),
    };
    lexer.run()?;
    Ok(Lexed { tokens: lexer.tokens, scope: lexer.scope, unknown: lexer.unknown })
}

pub(super) type Characters = Peekable<IntoIter<char>>;

pub(super) fn characters(text: &str) -> Characters {
    text.chars().collect::<Vec<_>>().into_iter().peekable()
}

pub(super) struct Lexer<'s, 'v> {
    pub(super) characters: Characters,
    pub(super) script: &'s mut Script,
    /// How many expansions and shells are around.
    pub(super) depth: usize,
    pub(super) unknown: Origin,
    pub(super) word: Option<String>,
    /// Whether any of the word was quoted.
    pub(super) quoted: bool,
    pub(super) scope: Scope<'v>,
    tokens: Vec<Token>,
    /// Here-documents whose text begins after this line.
    documents: Vec<Document>,
}

/// A here-document whose text has yet to come.
struct Document {
    /// The line that ends it.
    end: String,
    /// Whether it is taken as it stands.
    quoted: bool,
}

impl Lexer<'_, '_> {
    fn run(&mut self) -> Read<()> {
        while let Some(character) = self.characters.next() {
            match character {
                '#' if self.word.is_none() => {
                    while self.characters.next_if(|next| *next != '\n').is_some() {}
                }
                '\n' => {
                    self.end_word()?;
                    // They belong to the command that this ends.
                    self.take_documents()?;
                    self.operator("\n");
                }
                '<' | '>' | '|' | '&' | ';' | '(' | ')' => self.operators(character)?,
                character => self.part_of_word(character)?,
            }
        }
        self.end_word()
    }

    /// A character that is no operator.
    pub(super) fn part_of_word(&mut self, character: char) -> Read<()> {
        match character {
            '\\' => {
                let next = self.characters.next().unwrap_or('\\');
                self.push(next);
                self.quoted = true;
            }
            '\'' => self.single_quotes(),
            '"' => {
                self.quoted = true;
                self.word.get_or_insert_default();
                self.inside_quotes(Some('"'))?;
            }
            '$' => self.expansion(Quotes::Outside)?,
            '`' => self.backticks(Quotes::Outside)?,
            ' ' | '\t' | '\r' | '\n' => self.end_word()?,
            character => self.push(character),
        }
        Ok(())
    }

    pub(super) fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    pub(super) fn push_text(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn operator(&mut self, operator: &str) {
        self.tokens.push(Token::Operator(operator.to_owned()));
    }

    pub(super) fn end_word(&mut self) -> Read<()> {
        let quoted = std::mem::take(&mut self.quoted);
        let Some(word) = self.word.take() else { return Ok(()) };
        if let Some(Token::Operator(operator)) = self.tokens.last()
            && matches!(operator.as_str(), "<<" | "<<-")
        {
            self.documents.push(Document { end: word.clone(), quoted });
        }
        if let Some((name, value)) = word.split_once('=')
            && is_name(name)
        {
            self.scope.set(name, value);
        }
        match braces(&word).filter(|_| !quoted) {
            Some((before, parts, after)) => {
                for part in parts.split(',') {
                    self.script.charge(before.len() + after.len())?;
                    self.tokens.push(Token::Word(format!("{before}{part}{after}")));
                }
            }
            None => self.tokens.push(Token::Word(word)),
        }
        Ok(())
    }

    fn operators(&mut self, first: char) -> Read<()> {
        // A number right before belongs to the redirection.
        if matches!(first, '<' | '>')
            && self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word()?;
        if matches!(first, '<' | '>') && self.characters.next_if_eq(&'(').is_some() {
            let inner = self.until_closed('(', ')');
            let path = match first {
                '<' => {
                    let prints = self.inner(&inner)?;
                    self.script.files.pipe_from(prints)
                }
                _ => self.script.files.pipe_into(inner),
            };
            self.push_text(&path);
            return self.end_word();
        }
        let mut operator = String::from(first);
        while let Some(next) = self.characters.next_if(|next| continues(&operator, *next)) {
            operator.push(next);
        }
        self.operator(&operator);
        Ok(())
    }

    fn single_quotes(&mut self) {
        self.quoted = true;
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next_if(|next| *next != '\'') {
            self.push(character);
        }
        self.characters.next();
    }

    /// What stands in double quotes, or in a here-document, which has no end but its own.
    pub(super) fn inside_quotes(&mut self, end: Option<char>) -> Read<()> {
        while let Some(character) = self.characters.next() {
            match character {
                character if Some(character) == end => break,
                '\\' => match self.characters.next() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => self.push_text(&format!("\\{other}")),
                    None => {}
                },
                '$' => self.expansion(Quotes::Inside)?,
                '`' => self.backticks(Quotes::Inside)?,
                character => self.push(character),
            }
        }
        Ok(())
    }

    /// What stands before the bracket that closes one already read.
    pub(super) fn until_closed(&mut self, opens: char, closes: char) -> String {
        let (mut inner, mut depth, mut quote) = (String::new(), 1, None);
        while let Some(character) = self.characters.next() {
            match (quote, character) {
                (Some(open), character) if open == character => quote = None,
                (None, '\'' | '"') => quote = Some(character),
                (None | Some('"'), '\\') => {
                    inner.push(character);
                    inner.extend(self.characters.next());
                    continue;
                }
                (None, character) if character == opens => depth += 1,
                (None, character) if character == closes => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(character);
        }
        inner
    }

    fn take_documents(&mut self) -> Read<()> {
        for Document { end, quoted } in std::mem::take(&mut self.documents) {
            let mut document = String::new();
            loop {
                let mut line = String::new();
                while let Some(character) = self.characters.next_if(|next| *next != '\n') {
                    line.push(character);
                }
                let more = self.characters.next().is_some();
                if line.trim_start_matches('\t') == end || !more && line.is_empty() {
                    break;
                }
                document.push_str(&line);
                document.push('\n');
                if !more {
                    break;
                }
            }
            if !quoted {
                let rest = std::mem::replace(&mut self.characters, characters(&document));
                self.inside_quotes(None)?;
                self.characters = rest;
                document = self.word.take().unwrap_or_default();
            }
            self.tokens.push(Token::Document(document));
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    Outside,
    Inside,
}

/// The first `{a,b}` of a word, with what stands before and after it.
fn braces(word: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = word.split_once('{')?;
    let (parts, after) = rest.split_once('}')?;
    parts.contains(',').then_some((before, parts, after))
}

fn continues(operator: &str, next: char) -> bool {
    let longer = format!("{operator}{next}");
    matches!(
        longer.as_str(),
        "<<" | "<<-" | "<<<" | ">>" | ">|" | ">&" | "<&" | "<>" | "||" | "|&" | "&&" | "&>" | "&>>" | ";;"
    )
}

pub(super) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
