//! Reads a shell command into the programs that it would run.

mod following;
mod printing;
mod redirections;

use std::collections::BTreeMap;
use std::rc::Rc;

use super::MAX_COMMAND;
use super::environment;
use super::files::Files;
use super::flow::{Flow, Origin};
use super::groups::Groups;
use super::lexer::{Lexed, Token, has_unknown, is_unknown, lex};
use super::scope::Scope;
use super::simple::Simple;
use redirections::{Input, Parsed, inputs_of_groups};

/// How often a command may pass another on to a shell.
pub(super) const MAX_DEPTH: usize = 8;
/// How many programs a command may run.
const MAX_COMMANDS: usize = 10_000;
/// How many words a program may have. Each rule looks at all of them.
const MAX_WORDS: usize = 10_000;
/// How many bytes are looked at, with all that variables and inner shells make of them.
const MAX_BYTES: usize = 10 * MAX_COMMAND;

/// Something that was read, or why it cannot be.
pub(super) type Read<T> = Result<T, &'static str>;

pub(super) const TOO_DEEP: &str = "it passes commands on to other shells too often to be checked";
const TOO_MANY: &str = "it runs more programs than can be checked";
const TOO_MANY_WORDS: &str = "it gives a program more words than can be checked";
const TOO_LARGE: &str = "with its variables filled in it is longer than can be checked";

/// The programs that a command would run, those of inner shells included.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    operators: usize,
    /// Whether variables are set for a program.
    assigns: bool,
    /// How many more bytes are looked at.
    left: usize,
    pub(super) files: Files,
    /// The functions that it defines, with what they do.
    pub(super) functions: BTreeMap<String, String>,
    /// The aliases that it defines, each with the command that it stands for.
    pub(super) aliases: BTreeMap<String, String>,
    /// The functions that are being read.
    calling: Vec<String>,
    /// The directory that it changed to, if it is known.
    directory: Option<String>,
    /// The directory in which it unpacked what it downloaded, if it did.
    unpacked: Option<Option<String>>,
    /// Whether some of it cannot be read: a quote or a bracket has no end.
    pub(super) unfinished: bool,
}

/// What is around a command within another.
#[derive(Debug, Clone, Default)]
pub(super) struct Around<'a> {
    pub(super) depth: usize,
    pub(super) scope: Option<&'a Scope<'a>>,
    /// What its programs read that have nothing else to read.
    pub(super) reads: Option<Rc<Flow>>,
    /// The name and the arguments of the script or function.
    pub(super) arguments: Option<Vec<String>>,
    /// The program that runs it, if it is not a shell.
    pub(super) by: Option<String>,
}

/// What is known where a program stands.
struct Here<'a> {
    depth: usize,
    scope: &'a Scope<'a>,
    unknown: Origin,
    by: Option<String>,
}

impl Script {
    /// Reads a command, or says why it cannot be read.
    pub(super) fn read(text: &str) -> Read<Script> {
        let mut script = Script {
            commands: Vec::new(),
            operators: 0,
            assigns: false,
            left: MAX_BYTES,
            files: Files::default(),
            functions: BTreeMap::new(),
            aliases: BTreeMap::new(),
            calling: Vec::new(),
            directory: None,
            unpacked: None,
            unfinished: false,
        };
        script.add(text, Around::default())?;
        while let Some(reader) = script.files.take_any_reader() {
            script.add(&reader, Around::default())?;
        }
        Ok(script)
    }

    /// Whether it is one program, without any operator or variable.
    pub(super) fn is_plain(&self) -> bool {
        self.commands.len() == 1 && self.operators == 0 && !self.assigns
    }

    /// Counts bytes that are looked at or copied, so that no command grows without end.
    pub(super) fn charge(&mut self, bytes: usize) -> Read<()> {
        self.left = self.left.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }

    /// Adds the programs of a command. Returns what it prints.
    pub(super) fn add(&mut self, text: &str, around: Around<'_>) -> Read<Flow> {
        if around.depth > MAX_DEPTH {
            return Err(TOO_DEEP);
        }
        self.charge(text.len())?;
        let Lexed { tokens, inputs, scope, unknown } = lex(self, text, &around)?;
        let here = Here { depth: around.depth, scope: &scope, unknown, by: around.by };
        let mut inputs = inputs_of_groups(&tokens, &inputs);
        let mut groups = Groups::new(around.reads);
        let mut current = Parsed::default();
        for (index, token) in tokens.into_iter().enumerate() {
            if let Some(input) = inputs.remove(&index) {
                self.finish(std::mem::take(&mut current), &mut groups, &here)?;
                let reads = self.read_by(input, &here)?;
                groups.redirect(reads);
            }
            match token {
                Token::Word(word) => current.word(word),
                Token::Document(document) => current.reads = Some(Input::Text(document)),
                Token::Operator(operator) if operator.contains(['<', '>']) => {
                    self.operators += 1;
                    current.redirect = Some(operator);
                }
                Token::Operator(operator) => {
                    self.operators += usize::from(operator != "\n");
                    self.finish(std::mem::take(&mut current), &mut groups, &here)?;
                    groups.operator(&operator);
                }
            }
            self.charge(groups.take_copied())?;
        }
        self.finish(current, &mut groups, &here)?;
        self.charge(groups.take_copied())?;
        Ok(groups.finish())
    }

    /// Adds one program with its redirections.
    fn finish(&mut self, mut parsed: Parsed, groups: &mut Groups, here: &Here<'_>) -> Read<()> {
        let assignments = groups.take_keywords(&mut parsed.words);
        for (number, input) in std::mem::take(&mut parsed.numbered) {
            if let Some(flow) = self.read_by(input, here)? {
                self.files.open(&number, flow.as_ref().clone());
            }
        }
        if let Some(path) = parsed.reads_number.take().map(|number| Files::opened(&number))
            && self.files.get(&path).is_some()
        {
            parsed.reads = Some(Input::File(path));
        }
        let opens: Vec<String> = match &parsed.reads {
            Some(Input::File(path)) => vec![path.clone()],
            _ => Vec::new(),
        };
        self.assigns |= !assignments.is_empty();
        let environment = environment::of_interest(&assignments);
        if !parsed.words.is_empty() {
            let reads = match parsed.reads {
                Some(input) => self.read_by(input, here)?,
                None => groups.reads(),
            };
            if parsed.words.iter().eq(["exec"]) {
                groups.keep_reading(reads.clone());
            }
            let first = Simple { writes: parsed.writes.clone(), opens, environment, ..Simple::default() };
            groups.last = self.program(parsed.words, first, reads, here)?;
        } else if !parsed.writes.is_empty() || !environment.is_empty() || !opens.is_empty() {
            // `$(< file)` prints the file.
            if let [path] = opens.as_slice() {
                let content = Origin { content: true, ..Origin::default() };
                groups.last = self.copied(path)?.unwrap_or_else(|| Flow::unknown(content));
            }
            let simple = Simple { writes: parsed.writes.clone(), opens, environment, ..Simple::default() };
            for script in environment::scripts(&simple.environment) {
                self.add(&script, here.inside(None))?;
            }
            self.push(simple)?;
        }
        for path in &parsed.writes {
            self.write(path, &groups.last, here)?;
        }
        Ok(())
    }

    /// What is read from an input, as far as the command tells.
    fn read_by(&mut self, input: Input, here: &Here<'_>) -> Read<Option<Rc<Flow>>> {
        Ok(match input {
            Input::Text(text) => {
                self.charge(text.len())?;
                Some(Rc::new(here.known(text)))
            }
            Input::File(path) => {
                let of_file = || Flow {
                    unknown: false,
                    is_file: true,
                    ..Flow::unknown(Origin { content: true, ..Origin::default() })
                };
                let file = self.copied(&path)?;
                (path != "/dev/null").then(|| Rc::new(file.unwrap_or_else(of_file)))
            }
        })
    }

    fn push(&mut self, simple: Simple) -> Read<()> {
        if self.commands.len() >= MAX_COMMANDS {
            return Err(TOO_MANY);
        }
        self.commands.push(simple);
        Ok(())
    }
}

impl Here<'_> {
    /// A text that stands in the command.
    fn known(&self, text: String) -> Flow {
        let origin = if has_unknown(&text) { self.unknown } else { Origin::default() };
        Flow { text, unknown: false, is_file: false, origin }
    }

    /// A shell that is started here.
    fn inside(&self, reads: Option<Rc<Flow>>) -> Around<'_> {
        Around { depth: self.depth + 1, scope: Some(self.scope), reads, arguments: None, by: self.by.clone() }
    }
}

/// Whether nothing of a text is known.
fn is_all_unknown(text: &str) -> bool {
    text.chars().all(|character| is_unknown(character) || character.is_whitespace())
}

/// A text without the lines of which nothing is known.
fn known_lines(text: &str) -> String {
    let known = text.split_inclusive('\n').filter(|line| line.trim().is_empty() || !is_all_unknown(line));
    known.collect()
}
