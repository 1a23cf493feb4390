//! Splits a shell command into words and operators, with quotes and escapes resolved. What stands behind a `$` is in
//! [`expansion`](super::expansion).

use std::collections::BTreeMap;

use super::characters::Characters;
use super::documents::Document;
use super::flow::Origin;
use super::position::Position;
use super::scope::{ARGUMENTS, Scope};
use super::script::{Around, Read, Script};

/// Stands for what only a running shell knows.
pub(super) const UNKNOWN: char = '\u{fffc}';
/// Stands for the value of a variable whose name says that it is secret.
pub(super) const SECRET: char = '\u{fffb}';
/// Stands for an argument of a function or a script, where nobody has called it yet.
pub(super) const ARGUMENT: char = '\u{fffa}';

/// Whether a character stands for what only a running shell knows.
pub(super) fn is_unknown(character: char) -> bool {
    matches!(character, UNKNOWN | SECRET | ARGUMENT)
}

/// Whether a text has parts that only a running shell knows.
pub(super) fn has_unknown(text: &str) -> bool {
    text.contains(is_unknown)
}

/// A piece of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Operator(String),
    /// The text of a here-document, behind the word that ends it.
    Document(String),
}

/// What a command is made of.
#[derive(Debug)]
pub(super) struct Lexed<'v> {
    pub(super) tokens: Vec<Token>,
    /// By the token that opens a group, the one that it reads.
    pub(super) inputs: BTreeMap<usize, usize>,
    /// The variables that it sets.
    pub(super) scope: Scope<'v>,
    /// Where the parts of it come from that only a running shell knows.
    pub(super) unknown: Origin,
}

/// Splits a command. The commands within it (`$(…)`, backticks, `<(…)`) are added to the script.
pub(super) fn lex<'v>(script: &mut Script, text: &str, around: &Around<'v>) -> Read<Lexed<'v>> {
    let mut scope = Scope::within(around.scope);
    if let Some(arguments) = &around.arguments {
        let (name, arguments) = arguments.split_first().map_or(("sh", &[][..]), |(name, rest)| (name, rest));
        scope.set("0", name);
        scope.set_list(ARGUMENTS, arguments.to_vec());
    }
    let mut lexer = Lexer {
        characters: Characters::new(text),
        script,
        depth: around.depth,
        tokens: Vec::new(),
        position: Position::default(),
        brackets: 0,
        arithmetic: None,
        unknown: Origin::default(),
        word: None,
        quoted: false,
        assigns: None,
        scope,
        documents: Vec::new(),
        condition: false,
        command: 0,
        definitions: Vec::new(),
        unfinished: false,
    };
    lexer.run()?;
    lexer.end_command()?;
    // Texts that are taken for commands because they might be some need no end.
    if around.depth == 0 && (lexer.unfinished || !lexer.position.is_balanced()) {
        lexer.script.unfinished = true;
    }
    let Lexer { tokens, position, scope, unknown, .. } = lexer;
    Ok(Lexed { tokens, inputs: position.inputs, scope, unknown })
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
    /// Whether the word sets a variable, once its first `=` is read.
    pub(super) assigns: Option<bool>,
    pub(super) scope: Scope<'v>,
    pub(super) tokens: Vec<Token>,
    pub(super) position: Position,
    /// Here-documents whose text begins after this line.
    pub(super) documents: Vec<Document>,
    /// How many round brackets are open, and of which of them the inside may be a calculation.
    brackets: usize,
    arithmetic: Option<usize>,
    /// Whether it is between `[[` and `]]`, where operators are words.
    condition: bool,
    /// The token with which the command begins that is being read.
    pub(super) command: usize,
    /// The functions that are being read: how many groups are around, the name, and where the text begins.
    pub(super) definitions: Vec<(usize, String, usize)>,
    /// Whether a quote or a bracket has no end.
    pub(super) unfinished: bool,
}

impl Lexer<'_, '_> {
    fn run(&mut self) -> Read<()> {
        while let Some(character) = self.characters.next() {
            match character {
                '#' if self.word.is_none() => {
                    self.characters.raw_until('\n');
                }
                '\n' => {
                    self.end_word()?;
                    self.take_documents()?;
                    self.operator("\n")?;
                }
                '<' | '>' | '|' | '&' | '(' | ')' if self.condition => {
                    self.end_word()?;
                    self.push(character);
                    self.end_word()?;
                }
                '(' | '|' | ')' if self.position.is_pattern() => self.pattern(character)?,
                '(' if self.begins_array() => self.array()?,
                '(' if self.word.is_none() && self.calculation()? => {}
                '(' if self.begins_function() => self.function()?,
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
                let next = self.characters.raw().unwrap_or('\\');
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
            '=' => self.equals_sign(),
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

    pub(super) fn operator(&mut self, operator: &str) -> Read<()> {
        if !operator.contains(['<', '>']) {
            self.end_command()?;
        }
        self.position.operator(self.tokens.len(), operator);
        self.tokens.push(Token::Operator(operator.to_owned()));
        if !operator.contains(['<', '>']) {
            self.command = self.tokens.len();
        }
        Ok(())
    }

    /// The redirection that the word which is being read belongs to.
    pub(super) fn redirection(&self) -> Option<&str> {
        match self.tokens.last() {
            Some(Token::Operator(operator)) if operator.contains(['<', '>']) => Some(operator),
            _ => None,
        }
    }

    pub(super) fn end_word(&mut self) -> Read<()> {
        let quoted = std::mem::take(&mut self.quoted);
        self.assigns = None;
        let Some(word) = self.word.take() else { return Ok(()) };
        if let Some(operator) = self.redirection().map(str::to_owned) {
            return self.end_target(&operator, word, quoted);
        }
        self.set_variable(&word)?;
        let starts = self.position.is_start();
        self.condition = !quoted && (self.condition && word != "]]" || starts && word == "[[");
        let was_case = !self.position.is_pattern();
        if !quoted || !starts {
            self.position.word(self.tokens.len(), &word);
        } else {
            self.position.word(self.tokens.len(), "program");
        }
        if self.position.is_pattern() {
            // The patterns of a `case` are no programs.
            if was_case {
                self.tokens.push(Token::Word(word));
                self.tokens.push(Token::Operator("\n".to_owned()));
                self.command = self.tokens.len();
            }
            return Ok(());
        }
        self.note_definition(&word);
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

    /// The word of a redirection.
    fn end_target(&mut self, operator: &str, word: String, quoted: bool) -> Read<()> {
        let names_document = self.names_document() && self.arithmetic.is_none();
        if matches!(operator, "<" | "<<<") {
            self.position.input(self.tokens.len());
        }
        self.tokens.push(Token::Word(word.clone()));
        if names_document {
            self.expect_document(operator, word, quoted);
        }
        Ok(())
    }

    fn operators(&mut self, first: char) -> Read<()> {
        // A number right before belongs to the redirection.
        let is_number = |word: &mut String| word.chars().all(|c| c.is_ascii_digit());
        let number = if matches!(first, '<' | '>') { self.word.take_if(is_number) } else { None };
        self.end_word()?;
        if matches!(first, '<' | '>') && self.characters.next_if(|next| next == '(').is_some() {
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
        while let Some(next) = self.characters.next_if(|next| continues(&operator, next)) {
            operator.push(next);
        }
        // Only what is read as the input goes to the program.
        if let Some(number) = number.filter(|number| first == '<' && number != "0") {
            operator.insert_str(0, &number);
        }
        self.count_brackets(first);
        self.operator(&operator)
    }

    /// `((…))` may be a calculation, in which `<<` is no here-document.
    fn count_brackets(&mut self, operator: char) {
        match operator {
            '(' => {
                self.brackets += 1;
                if self.arithmetic.is_none() && self.characters.peek() == Some('(') {
                    self.arithmetic = Some(self.brackets);
                }
            }
            ')' => {
                self.arithmetic = self.arithmetic.filter(|calculation| *calculation != self.brackets);
                self.brackets = self.brackets.saturating_sub(1);
            }
            _ => {}
        }
    }

    fn single_quotes(&mut self) {
        self.quoted = true;
        let text = self.characters.raw_until('\'');
        self.push_text(&text);
        self.unfinished |= self.characters.raw().is_none();
    }

    /// What stands in double quotes, or in a here-document, which has no end but its own.
    pub(super) fn inside_quotes(&mut self, end: Option<char>) -> Read<()> {
        while let Some(character) = self.characters.next() {
            match character {
                character if Some(character) == end => return Ok(()),
                '\\' => match self.characters.raw() {
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => self.push_text(&format!("\\{other}")),
                    None => {}
                },
                '$' => self.expansion(Quotes::Inside)?,
                '`' => self.backticks(Quotes::Inside)?,
                character => self.push(character),
            }
        }
        self.unfinished |= end.is_some();
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
        "<<" | "<<-"
            | "<<<"
            | ">>"
            | ">|"
            | ">&"
            | "<&"
            | "<>"
            | "||"
            | "|&"
            | "&&"
            | "&>"
            | "&>>"
            | ";;"
            | ";;&"
            | ";&"
    )
}

pub(super) fn is_name(text: &str) -> bool {
    text.chars().next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
