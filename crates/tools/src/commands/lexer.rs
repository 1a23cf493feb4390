//! Splits a shell command into words and operators, with quotes, escapes and simple expansions resolved.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

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
#[derive(Debug, Default)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    /// Commands within it: `$(…)`, backticks, `<(…)`.
    pub(super) nested: Vec<String>,
}

pub(super) fn lex(text: &str) -> Lexed {
    let text = text.replace('\0', "").replace("\\\r\n", "").replace("\\\n", "");
    let mut lexer = Lexer {
        characters: text.chars().peekable(),
        lexed: Lexed::default(),
        word: None,
        quoted: false,
        variables: BTreeMap::new(),
        documents: Vec::new(),
    };
    lexer.run();
    lexer.lexed
}

struct Lexer<'a> {
    characters: Peekable<Chars<'a>>,
    lexed: Lexed,
    word: Option<String>,
    /// Whether any of the word was quoted.
    quoted: bool,
    /// What the command itself has set.
    variables: BTreeMap<String, String>,
    /// Here-documents whose text begins after this line, by what ends them.
    documents: Vec<String>,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(character) = self.characters.next() {
            match character {
                '\\' => {
                    let next = self.characters.next().unwrap_or('\\');
                    self.push(next);
                    self.quoted = true;
                }
                '\'' => self.single_quotes(),
                '"' => self.double_quotes(),
                '$' => self.expansion(Quotes::Outside),
                '`' => self.backticks(),
                '#' if self.word.is_none() => {
                    while self.characters.next_if(|next| *next != '\n').is_some() {}
                }
                '\n' => {
                    self.end_word();
                    // They belong to the command that this ends.
                    self.take_documents();
                    self.operator("\n");
                }
                ' ' | '\t' | '\r' => self.end_word(),
                '<' | '>' | '|' | '&' | ';' | '(' | ')' => self.operators(character),
                character => self.push(character),
            }
        }
        self.end_word();
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn push_text(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn operator(&mut self, operator: &str) {
        self.lexed.tokens.push(Token::Operator(operator.to_owned()));
    }

    fn end_word(&mut self) {
        let quoted = std::mem::take(&mut self.quoted);
        let Some(word) = self.word.take() else { return };
        if let Some(Token::Operator(operator)) = self.lexed.tokens.last()
            && matches!(operator.as_str(), "<<" | "<<-")
        {
            self.documents.push(word.clone());
        }
        if let Some((name, value)) = word.split_once('=')
            && is_name(name)
        {
            self.variables.insert(name.to_owned(), value.to_owned());
        }
        let braces = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).filter(|_| !quoted);
        match braces {
            Some(inner) if inner.contains(',') => {
                self.lexed.tokens.extend(inner.split(',').map(|part| Token::Word(part.to_owned())));
            }
            _ => self.lexed.tokens.push(Token::Word(word)),
        }
    }

    fn operators(&mut self, first: char) {
        // A number right before belongs to the redirection.
        if matches!(first, '<' | '>')
            && self.word.as_ref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()))
        {
            self.word = None;
        }
        self.end_word();
        if matches!(first, '<' | '>') && self.characters.next_if_eq(&'(').is_some() {
            let inner = self.until_closed();
            self.lexed.nested.push(inner);
            self.push_text("/dev/fd/63");
            return;
        }
        let mut operator = String::from(first);
        while let Some(next) = self.characters.next_if(|next| continues(&operator, *next)) {
            operator.push(next);
        }
        self.operator(&operator);
    }

    fn single_quotes(&mut self) {
        self.quoted = true;
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next_if(|next| *next != '\'') {
            self.push(character);
        }
        self.characters.next();
    }

    fn double_quotes(&mut self) {
        self.quoted = true;
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next() {
            match character {
                '"' => return,
                '\\' => match self.characters.next() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => self.push_text(&format!("\\{other}")),
                    None => {}
                },
                '$' => self.expansion(Quotes::Inside),
                '`' => self.backticks(),
                character => self.push(character),
            }
        }
    }

    fn expansion(&mut self, quotes: Quotes) {
        match self.characters.peek().copied() {
            Some('\'') if quotes == Quotes::Outside => {
                self.characters.next();
                self.ansi_quotes();
            }
            Some('"') if quotes == Quotes::Outside => {}
            Some('(') => {
                self.characters.next();
                let inner = self.until_closed();
                self.substitution(inner);
            }
            Some('{') => {
                self.characters.next();
                let mut inner = String::new();
                while let Some(character) = self.characters.next_if(|next| *next != '}') {
                    inner.push(character);
                }
                self.characters.next();
                self.variable(&inner, quotes);
            }
            Some('@' | '*') => {
                // There are no arguments.
                self.characters.next();
            }
            Some(next) if next.is_ascii_alphabetic() || next == '_' => {
                let mut name = String::new();
                while let Some(c) =
                    self.characters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_')
                {
                    name.push(c);
                }
                self.variable(&name, quotes);
            }
            Some(next) if next.is_ascii_digit() || "?$!#-".contains(next) => {
                self.characters.next();
                self.push(UNKNOWN);
            }
            _ => self.push('$'),
        }
    }

    fn variable(&mut self, name: &str, quotes: Quotes) {
        if name == "IFS" {
            match quotes {
                Quotes::Outside => self.end_word(),
                Quotes::Inside => self.push(' '),
            }
        } else if name == "HOME" {
            self.push('~');
        } else if let Some(value) = self.variables.get(name).cloned() {
            match quotes {
                // The shell splits it into words.
                Quotes::Outside => {
                    for (index, part) in value.split_whitespace().enumerate() {
                        if index > 0 {
                            self.end_word();
                        }
                        self.push_text(part);
                    }
                }
                Quotes::Inside => self.push_text(&value),
            }
        } else {
            self.push(UNKNOWN);
        }
    }

    fn backticks(&mut self) {
        let mut inner = String::new();
        while let Some(character) = self.characters.next() {
            match character {
                '`' => break,
                '\\' => inner.extend(self.characters.next()),
                character => inner.push(character),
            }
        }
        self.substitution(inner);
    }

    /// A command whose output becomes part of the word. What `echo` and `printf` print is known.
    fn substitution(&mut self, inner: String) {
        let words = inner.split_whitespace().collect::<Vec<_>>();
        match words.as_slice() {
            ["echo" | "printf", printed @ ..] if !inner.contains(['|', ';', '&', '$', '`', '\\']) => {
                let printed = printed.iter().filter(|word| !word.starts_with('-'));
                let printed =
                    printed.map(|word| word.trim_matches(['\'', '"'])).collect::<Vec<_>>().join(" ");
                self.push_text(&printed);
            }
            _ => self.push(UNKNOWN),
        }
        self.lexed.nested.push(inner);
    }

    /// `$'…'`, in which bytes can be written as numbers.
    fn ansi_quotes(&mut self) {
        self.quoted = true;
        self.word.get_or_insert_default();
        while let Some(character) = self.characters.next() {
            match character {
                '\'' => return,
                '\\' => {
                    let escaped = self.ansi_escape();
                    self.push(escaped);
                }
                character => self.push(character),
            }
        }
    }

    fn ansi_escape(&mut self) -> char {
        let (radix, most) = match self.characters.next() {
            Some('x') => (16, 2),
            Some('u') => (16, 4),
            Some('U') => (16, 8),
            Some('n') => return '\n',
            Some('t') => return '\t',
            Some(octal @ '0'..='7') => return self.number(8, 2, octal.to_digit(8).unwrap_or_default()),
            Some(other) => return other,
            None => return '\\',
        };
        self.number(radix, most, 0)
    }

    fn number(&mut self, radix: u32, most: usize, mut value: u32) -> char {
        for _ in 0..most {
            let Some(digit) = self.characters.peek().and_then(|next| next.to_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.characters.next();
        }
        char::from_u32(value).unwrap_or(UNKNOWN)
    }

    /// What stands before the parenthesis that closes one already read.
    fn until_closed(&mut self) -> String {
        let (mut inner, mut depth, mut quote) = (String::new(), 1, None);
        for character in self.characters.by_ref() {
            match (quote, character) {
                (Some(open), character) if open == character => quote = None,
                (None, '\'' | '"') => quote = Some(character),
                (None, '(') => depth += 1,
                (None, ')') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
            inner.push(character);
        }
        inner
    }

    fn take_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
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
            self.lexed.tokens.push(Token::Document(document));
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Outside,
    Inside,
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
