//! Reads a shell command into the programs that it would run.

use super::lexer::{Lexed, Token, UNKNOWN, is_name, lex};

/// How often a command may pass another on to a shell.
const MAX_DEPTH: usize = 8;
/// How many programs a command may run, as far as they are looked at.
const MAX_COMMANDS: usize = 2000;

/// The programs that a command would run, those of inner shells included.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    operators: usize,
}

/// One program with its arguments.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Simple {
    /// Its name without a path, then its arguments.
    pub(super) words: Vec<String>,
    /// The files that its output goes to.
    pub(super) writes: Vec<String>,
    /// The program whose output it reads.
    pub(super) reads_from: Option<String>,
    /// Which commands it has within its words: `$(…)`, `<(…)`.
    pub(super) within: Vec<String>,
}

impl Simple {
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// Whether it has a short option, alone or among others, or a long one.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        self.arguments().iter().any(|word| match word.strip_prefix("--") {
            Some(name) => !long.is_empty() && name.split('=').next() == Some(long),
            None => word.strip_prefix('-').is_some_and(|letters| letters.contains(short)),
        })
    }

    /// The arguments that are no options.
    pub(super) fn operands(&self) -> impl Iterator<Item = &str> {
        self.arguments().iter().map(String::as_str).filter(|word| !word.starts_with('-'))
    }
}

impl Script {
    /// Reads a command. None if it is too deep to be read.
    pub(super) fn read(text: &str) -> Option<Script> {
        let mut script = Script::default();
        script.add(text, 0)?;
        Some(script)
    }

    /// Whether it is one program, without any operator.
    pub(super) fn is_plain(&self) -> bool {
        self.commands.len() == 1 && self.operators == 0
    }

    fn add(&mut self, text: &str, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH || self.commands.len() > MAX_COMMANDS {
            return None;
        }
        let Lexed { tokens, nested } = lex(text);
        let mut current = Parsed::default();
        let mut before = None;
        for token in tokens {
            match token {
                Token::Word(word) => current.word(word),
                Token::Document(document) => current.documents.push(document),
                Token::Operator(operator) if operator.contains(['<', '>']) => {
                    self.operators += 1;
                    current.redirect = Some(operator);
                }
                Token::Operator(operator) => {
                    self.operators += usize::from(operator != "\n");
                    let name = self.finish(std::mem::take(&mut current), before.take(), &nested, depth)?;
                    before = if operator.starts_with('|') && operator != "||" { name } else { None };
                }
            }
        }
        self.finish(current, before, &nested, depth)?;
        nested.iter().try_for_each(|inner| self.add(inner, depth + 1))
    }

    /// Adds one program, and what it passes on to a shell. Returns its name.
    fn finish(
        &mut self,
        parsed: Parsed,
        reads_from: Option<String>,
        nested: &[String],
        depth: usize,
    ) -> Option<Option<String>> {
        let mut simple =
            Simple { words: parsed.words, writes: parsed.writes, reads_from, within: Vec::new() };
        if simple.words.iter().any(|word| word.contains(UNKNOWN) || word.contains("/dev/fd/63")) {
            simple.within = nested.to_vec();
        }
        let mut name = None;
        loop {
            clean_name(&mut simple);
            if simple.words.is_empty() {
                if !simple.writes.is_empty() {
                    self.commands.push(simple);
                }
                return Some(name);
            }
            name.get_or_insert_with(|| simple.name().to_owned());
            self.commands.push(simple.clone());
            for inner in passed_on(&simple).into_iter().chain(shell_documents(&simple, &parsed.documents)) {
                self.add(&inner, depth + 1)?;
            }
            let Some(rest) = unwrapped(&simple) else {
                return Some(Some(simple.name().to_owned()));
            };
            // What is read is read by the program inside.
            simple = Simple { words: rest, writes: Vec::new(), ..simple };
        }
    }
}

/// One program while it is read.
#[derive(Default)]
struct Parsed {
    words: Vec<String>,
    writes: Vec<String>,
    documents: Vec<String>,
    redirect: Option<String>,
}

impl Parsed {
    fn word(&mut self, word: String) {
        match self.redirect.take() {
            Some(operator) if operator == "<<<" => self.documents.push(word),
            Some(operator) if operator.contains('>') => self.writes.push(word),
            Some(_) => {}
            None => self.words.push(word),
        }
    }
}

/// Takes away what stands before a program's name, and the name's path.
fn clean_name(simple: &mut Simple) {
    const BEFORE: [&str; 10] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{", "time"];
    while let Some(first) = simple.words.first() {
        let assignment = first.split_once('=').is_some_and(|(name, _)| is_name(name));
        if assignment || BEFORE.contains(&first.as_str()) || first == "}" || first == "function" {
            simple.words.remove(0);
        } else {
            break;
        }
    }
    if let Some(first) = simple.words.first_mut() {
        let name = first.replace(UNKNOWN, "");
        *first = name.rsplit('/').next().unwrap_or(&name).to_ascii_lowercase();
    }
}

/// Programs that run another, with their options that have a value, and how many operands they have themselves.
const WRAPPERS: &[(&str, &str, usize)] = &[
    ("sudo", "ughpCrtTUDR", 0),
    ("doas", "uC", 0),
    ("env", "uC", 0),
    ("nice", "n", 0),
    ("ionice", "cnp", 0),
    ("timeout", "sk", 1),
    ("xargs", "InPLdasE", 0),
    ("stdbuf", "ioe", 0),
    ("nohup", "", 0),
    ("exec", "a", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("setsid", "", 0),
    ("watch", "n", 0),
    ("busybox", "", 0),
    ("flock", "wE", 1),
    ("strace", "oepPE", 0),
    ("chroot", "", 1),
    ("unshare", "", 0),
];

/// The program that another runs, if it does.
fn unwrapped(simple: &Simple) -> Option<Vec<String>> {
    if simple.name() == "find" {
        let exec = |word: &String| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
        let at = simple.words.iter().position(exec)?;
        return Some(
            simple
                .words
                .get(at + 1..)?
                .iter()
                .take_while(|word| *word != ";" && *word != "+")
                .cloned()
                .collect(),
        );
    }
    let (_, with_value, operands) = WRAPPERS.iter().find(|(name, _, _)| *name == simple.name())?;
    let mut words = simple.arguments().iter().peekable();
    let mut operands = *operands;
    while let Some(word) = words.peek() {
        if word.as_str() == "--" {
            words.next();
            break;
        } else if let Some(letters) = word.strip_prefix('-') {
            let takes_value =
                letters.chars().count() == 1 && letters.chars().all(|letter| with_value.contains(letter));
            words.next();
            if takes_value {
                words.next();
            }
        } else if word.split_once('=').is_some_and(|(name, _)| is_name(name)) {
            words.next();
        } else if operands > 0 {
            operands -= 1;
            words.next();
        } else {
            break;
        }
    }
    Some(words.cloned().collect::<Vec<_>>()).filter(|rest| !rest.is_empty())
}

/// What a program is given to run as a script.
fn passed_on(simple: &Simple) -> Vec<String> {
    let after = |option: &dyn Fn(&str) -> bool| {
        let at = simple.words.iter().position(|word| option(word));
        at.and_then(|at| simple.words.get(at + 1)).cloned()
    };
    let letter = |letter: char| {
        move |word: &str| word.starts_with('-') && !word.starts_with("--") && word.ends_with(letter)
    };
    match simple.name() {
        name if is_shell(name) || name == "su" => after(&letter('c')).into_iter().collect(),
        "eval" => vec![simple.arguments().join(" ")],
        "ssh" => simple
            .operands()
            .skip(1)
            .map(str::to_owned)
            .reduce(|a, b| format!("{a} {b}"))
            .into_iter()
            .collect(),
        "env" => after(&|word| word == "-S" || word == "--split-string").into_iter().collect(),
        "python" | "python2" | "python3" => {
            after(&letter('c')).map(|code| quoted_texts(&code)).unwrap_or_default()
        }
        "perl" | "ruby" | "node" => after(&letter('e')).map(|code| quoted_texts(&code)).unwrap_or_default(),
        "php" => after(&letter('r')).map(|code| quoted_texts(&code)).unwrap_or_default(),
        _ => Vec::new(),
    }
}

/// Here-documents that a shell would run.
fn shell_documents(simple: &Simple, documents: &[String]) -> Vec<String> {
    if is_shell(simple.name()) { documents.to_vec() } else { Vec::new() }
}

/// Whether a program runs what it reads.
pub(super) fn is_shell(name: &str) -> bool {
    matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish")
}

/// The texts in quotes of a program in another language: what it would give to a shell is among them.
fn quoted_texts(code: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let quote = rest.get(start..start + 1).unwrap_or_default();
        let after = rest.get(start + 1..).unwrap_or_default();
        let Some(end) = after.find(quote) else { break };
        texts.push(after.get(..end).unwrap_or_default().to_owned());
        rest = after.get(end + 1..).unwrap_or_default();
    }
    texts
}
