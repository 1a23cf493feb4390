//! What a command defines for those behind it: functions, arrays, arguments, and the variables that `read`, `printf -v`
//! and `for` set.

use super::lexer::{Lexer, Token, UNKNOWN, lex};
use super::names;
use super::paths;
use super::printed;
use super::scope::ARGUMENTS;
use super::script::{Around, MAX_DEPTH, Read, TOO_DEEP};
use super::simple::Simple;

impl Lexer<'_, '_> {
    /// A character between the patterns of a `case`. The last one ends them.
    pub(super) fn pattern(&mut self, character: char) -> Read<()> {
        self.end_word()?;
        if character == ')' {
            self.position.end_pattern();
        }
        Ok(())
    }

    /// Whether the bracket that was just read begins the values of an array.
    pub(super) fn begins_array(&self) -> bool {
        self.assigns == Some(true) && self.word.as_deref().is_some_and(|word| word.ends_with('='))
    }

    /// Reads the values of an array.
    pub(super) fn array(&mut self) -> Read<()> {
        let word = self.word.take().unwrap_or_default();
        let inner = self.until_closed('(', ')');
        let name = word.trim_end_matches('=');
        let mut values = match name.strip_suffix('+') {
            Some(name) => self.scope.list(name).unwrap_or_default().to_vec(),
            None => Vec::new(),
        };
        let own = name.trim_end_matches('+');
        for word in self.words_of(&inner)? {
            // `[index]=value`.
            let element = word.strip_prefix('[').and_then(|rest| rest.split_once("]="));
            match element {
                Some((index, value)) => {
                    self.scope.set(&format!("{own}[{index}]"), value);
                    values.push(value.to_owned());
                }
                None => values.push(word),
            }
        }
        self.script.charge(values.iter().map(|value| value.len() + 1).sum())?;
        self.scope.set_list(own, values);
        self.word = Some(format!("{name}=()"));
        self.end_word()
    }

    /// The words of a text.
    fn words_of(&mut self, text: &str) -> Read<Vec<String>> {
        if self.depth >= MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        let around = Around { depth: self.depth + 1, scope: Some(&self.scope), ..Around::default() };
        self.script.charge(text.len())?;
        let lexed = lex(self.script, text, &around)?;
        let words = lexed.tokens.into_iter().filter_map(|token| match token {
            Token::Word(word) => Some(word),
            _ => None,
        });
        Ok(words.collect())
    }

    /// Reads `((…))` as a calculation, if it is one. The first bracket is read already.
    pub(super) fn calculation(&mut self) -> Read<bool> {
        if self.characters.peek_raw() != Some('(') {
            return Ok(false);
        }
        let (place, unfinished) = (self.characters.place(), self.unfinished);
        let inner = self.until_closed('(', ')');
        self.script.charge(inner.len())?;
        if !is_calculation(&inner) || self.unfinished {
            self.characters.go_back(place);
            self.unfinished = unfinished;
            return Ok(false);
        }
        self.expand_within(&inner)?;
        self.push_text("let");
        self.end_word()?;
        Ok(true)
    }

    /// Reads the commands that stand within a calculation. What it comes to is a number.
    pub(super) fn expand_within(&mut self, text: &str) -> Read<()> {
        if self.depth >= MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        self.script.charge(text.len())?;
        self.depth += 1;
        let word = self.word.take();
        let rest = std::mem::replace(&mut self.characters, super::characters::Characters::new(text));
        self.inside_quotes(None)?;
        self.characters = rest;
        self.word = word;
        self.depth -= 1;
        Ok(())
    }

    /// Whether the bracket that was just read is that of `name()`.
    pub(super) fn begins_function(&mut self) -> bool {
        let place = self.characters.place();
        while self.characters.next_if(|next| next == ' ' || next == '\t').is_some() {}
        let closes = self.characters.peek() == Some(')');
        self.characters.go_back(place);
        let words = self.tokens.len() - self.command.min(self.tokens.len());
        closes && (self.word.is_some() && words <= 1 || self.word.is_none() && (1..=2).contains(&words))
    }

    /// Takes away the name of a function, which is no program, and remembers it for the text that follows.
    pub(super) fn function(&mut self) -> Read<()> {
        self.characters.raw_until(')');
        self.characters.raw();
        self.end_word()?;
        let words = self.tokens.split_off(self.command.min(self.tokens.len()));
        let name = words.into_iter().rev().find_map(|token| match token {
            Token::Word(word) => Some(word),
            _ => None,
        });
        self.operator("\n")?;
        self.definitions.push((self.position.depth(), name.unwrap_or_default(), usize::MAX));
        Ok(())
    }

    /// Notes where the text of a function begins and ends.
    pub(super) fn note_definition(&mut self, word: &str) {
        let (depth, place) = (self.position.depth(), self.characters.place());
        match word {
            "{" => {
                if let Some((around, _, start)) = self.definitions.last_mut()
                    && *start == usize::MAX
                    && *around + 1 == depth
                {
                    *start = place;
                } else if let [.., Token::Word(function), Token::Word(name)] = self.tokens.as_slice()
                    && function == "function"
                {
                    self.definitions.push((depth.saturating_sub(1), name.clone(), place));
                }
            }
            "}" => {
                let ends =
                    |(around, _, start): &mut (usize, String, usize)| *around == depth && *start <= place;
                if let Some((_, name, start)) = self.definitions.pop_if(ends) {
                    let text = self.characters.since(start);
                    let body = text.rsplit_once('}').map_or(text.as_str(), |(body, _)| body);
                    self.script.functions.insert(name, body.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Takes into account what the command that ends here defines.
    pub(super) fn end_command(&mut self) -> Read<()> {
        let (words, text) = self.words_of_command();
        let mut words: &[String] = &words;
        while let Some((
            "then" | "do" | "else" | "{" | "while" | "until" | "if" | "command" | "builtin",
            rest,
        )) = words.split_first().map(|(first, rest)| (first.as_str(), rest))
        {
            words = rest;
        }
        let Some((name, arguments)) = words.split_first() else { return Ok(()) };
        self.script.charge(words.iter().map(|word| word.len() + 1).sum())?;
        match name.as_str() {
            "set" => self.set_arguments(arguments),
            "shift" => self.shift(arguments),
            "printf" => self.print_into(words),
            "read" => self.read_into(arguments, text.as_deref()),
            "mapfile" | "readarray" => self.read_lines_into(arguments, text.as_deref()),
            "for" | "select" => self.loop_over(arguments),
            "declare" | "typeset" | "local" => self.refer(arguments),
            "alias" => self.name_alias(arguments),
            _ => {}
        }
        Ok(())
    }

    /// The words of the command that is being read, and the text that it is given with `<<<`.
    fn words_of_command(&self) -> (Vec<String>, Option<String>) {
        let (mut words, mut text, mut operator) = (Vec::new(), None, None);
        let of_interest = [
            "set",
            "shift",
            "printf",
            "read",
            "mapfile",
            "readarray",
            "for",
            "select",
            "declare",
            "typeset",
            "local",
            "alias",
        ];
        let tokens = self.tokens.get(self.command..).unwrap_or_default();
        let is_word =
            |token: &Token| matches!(token, Token::Word(word) if of_interest.contains(&word.as_str()));
        if !tokens.iter().take(6).any(is_word) {
            return (words, text);
        }
        for token in tokens {
            match (token, operator.take()) {
                (Token::Operator(sign), _) => operator = Some(sign.as_str()),
                (Token::Word(word), Some("<<<")) => text = Some(word.clone()),
                (Token::Word(word), None) if words.is_empty() && super::groups::is_assignment(word) => {}
                (Token::Word(word), None) => words.push(word.clone()),
                _ => {}
            }
        }
        (words, text)
    }

    /// `set -- a b` sets the arguments.
    fn set_arguments(&mut self, words: &[String]) {
        let mut words = words.iter();
        let mut values: Vec<String> = Vec::new();
        while let Some(word) = words.next() {
            if word == "--" || word == "-" {
                values.extend(words.cloned());
                break;
            } else if word.starts_with(['-', '+']) {
                if word.contains('o') {
                    words.next();
                }
                continue;
            }
            values.push(word.clone());
            values.extend(words.cloned());
            break;
        }
        if !values.is_empty() {
            self.scope.set_list(ARGUMENTS, values);
        }
    }

    fn shift(&mut self, words: &[String]) {
        let count = words.first().and_then(|count| count.parse().ok()).unwrap_or(1);
        if let Some(values) = self.scope.list(ARGUMENTS) {
            let values = values.get(count..).unwrap_or_default().to_vec();
            self.scope.set_list(ARGUMENTS, values);
        }
    }

    /// `printf -v name format …`.
    fn print_into(&mut self, words: &[String]) {
        if let [_, option, name, rest @ ..] = words
            && option == "-v"
        {
            let printf = std::iter::once("printf".to_owned()).chain(rest.iter().cloned()).collect();
            let value = printed::by(&Simple::new(printf, Vec::new()), super::MAX_COMMAND);
            self.scope.set(name, &value);
        }
    }

    /// `read a b <<< text`. What is read from elsewhere is not known.
    fn read_into(&mut self, words: &[String], text: Option<&str>) {
        let names: Vec<&String> = words.iter().filter(|word| super::lexer::is_name(word)).collect();
        let mut rest = text.map(str::trim);
        for (at, name) in names.iter().enumerate() {
            let value = match rest {
                None => UNKNOWN.to_string(),
                Some(text) if at + 1 == names.len() => text.to_owned(),
                Some(text) => {
                    let separators = self.scope.get("IFS").unwrap_or_default().to_owned();
                    let separates = |c: char| c.is_whitespace() || separators.contains(c);
                    let (first, after) = text.split_once(separates).unwrap_or((text, ""));
                    let first = first.to_owned();
                    rest = Some(after.trim_start());
                    first
                }
            };
            self.scope.set(name, &value);
        }
    }

    /// `mapfile name <<< text`.
    fn read_lines_into(&mut self, words: &[String], text: Option<&str>) {
        let name = words.last().filter(|word| super::lexer::is_name(word));
        if let (Some(name), Some(text)) = (name, text) {
            self.scope.set_list(name, text.lines().map(str::to_owned).collect());
        }
    }

    /// `for name in a b`: of all values the one counts that could do the most harm.
    fn loop_over(&mut self, words: &[String]) {
        if let [name, in_, values @ ..] = words
            && in_ == "in"
        {
            let does_harm = |value: &&String| {
                paths::is_vital(value, None)
                    || value
                        .split_whitespace()
                        .next()
                        .is_some_and(|first| names::is_dangerous(first.rsplit('/').next().unwrap_or(first)))
            };
            let value = values.iter().find(does_harm).or(values.first());
            self.scope.set(name, value.map_or("", String::as_str));
        }
    }
}

/// Whether the inside of a bracket is a calculation: a second bracket around all of it.
pub(super) fn is_calculation(inner: &str) -> bool {
    let Some(inside) = inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) else {
        return false;
    };
    let mut depth = 0_i32;
    for character in inside.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return false;
        }
    }
    depth == 0
}
