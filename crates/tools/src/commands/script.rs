//! Reads a shell command into the programs that it would run.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::files::Files;
use super::flow::{Flow, Origin};
use super::groups::Groups;
use super::lexer::{Lexed, Token, UNKNOWN, lex};
use super::programs::{self, Source};
use super::scope::Scope;
use super::simple::Simple;
use super::{MAX_COMMAND, printed};

/// How often a command may pass another on to a shell.
pub(super) const MAX_DEPTH: usize = 8;
/// How many programs a command may run.
const MAX_COMMANDS: usize = 10_000;
/// How many bytes are looked at, with all that variables and inner shells make of them.
const MAX_BYTES: usize = 10 * MAX_COMMAND;

/// Something that was read, or why it cannot be.
pub(super) type Read<T> = Result<T, &'static str>;

pub(super) const TOO_DEEP: &str = "it passes commands on to other shells too often to be checked";
const TOO_MANY: &str = "it runs more programs than can be checked";
const TOO_LARGE: &str = "with its variables filled in it is longer than can be checked";

/// The programs that a command would run, those of inner shells included.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    operators: usize,
    /// How many more bytes are looked at.
    left: usize,
    pub(super) files: Files,
}

/// What is around a command within another.
#[derive(Debug, Clone, Default)]
pub(super) struct Around<'a> {
    pub(super) depth: usize,
    pub(super) scope: Option<&'a Scope<'a>>,
    /// What its programs read that have nothing else to read.
    pub(super) reads: Option<Rc<Flow>>,
}

/// What is known where a program stands.
struct Here<'a> {
    depth: usize,
    scope: &'a Scope<'a>,
    unknown: Origin,
}

impl Script {
    /// Reads a command, or says why it cannot be read.
    pub(super) fn read(text: &str) -> Read<Script> {
        let mut script =
            Script { commands: Vec::new(), operators: 0, left: MAX_BYTES, files: Files::default() };
        script.add(text, Around::default())?;
        while let Some(reader) = script.files.take_any_reader() {
            script.add(&reader, Around::default())?;
        }
        Ok(script)
    }

    /// Whether it is one program, without any operator.
    pub(super) fn is_plain(&self) -> bool {
        self.commands.len() == 1 && self.operators == 0
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
        let here = Here { depth: around.depth, scope: &scope, unknown };
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
        groups.take_keywords(&mut parsed.words);
        if !parsed.words.is_empty() {
            let reads = match parsed.reads {
                Some(input) => self.read_by(input, here)?,
                None => groups.reads(),
            };
            groups.last = self.program(parsed.words, &parsed.writes, reads, here)?;
        } else if !parsed.writes.is_empty() {
            self.push(Simple { writes: parsed.writes.clone(), ..Simple::default() })?;
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
            Input::File(path) => self.copied(&path)?.map(Rc::new),
        })
    }

    /// Adds a program, those that it runs in turn, and what it passes on to a shell. Returns what they print.
    fn program(
        &mut self,
        words: Vec<String>,
        writes: &[String],
        reads: Option<Rc<Flow>>,
        here: &Here<'_>,
    ) -> Read<Flow> {
        let mut prints = Flow::default();
        let mut writes = writes.to_vec();
        let mut programs = vec![(words, reads)];
        while let Some((words, reads)) = programs.pop() {
            self.charge(words.iter().map(|word| word.len() + 1).sum())?;
            let path = words.first().cloned().unwrap_or_default();
            let mut simple = Simple::new(words, std::mem::take(&mut writes));
            if simple.words.iter().any(|word| word.contains(UNKNOWN)) {
                simple.within = here.unknown;
            }
            let scripts = self.scripts(&mut simple, &path, reads.as_deref(), here);
            let inner = programs::run_by(&simple, reads.as_deref());
            self.push(simple.clone())?;
            if scripts.is_empty() && inner.is_empty() {
                let printed = self.prints(&simple, reads.as_deref(), here)?;
                for path in programs::writes_to(&simple) {
                    self.write(&path, &printed, here)?;
                }
                prints.append(printed);
            }
            for script in scripts {
                prints.append(self.add(&script, here.inside(reads.clone()))?);
            }
            if programs::speaks_another_language(simple.name()) {
                prints.append(Flow::unknown(Origin::default()));
            }
            // What is read is read by the programs inside. Those of `xargs` find its words instead.
            let reads = reads.filter(|_| simple.name() != "xargs");
            for words in inner {
                self.charge(words.iter().map(|word| word.len() + 1).sum())?;
                programs.push((words, reads.clone()));
            }
        }
        Ok(prints)
    }

    /// What is in a file, if the command has written it.
    fn copied(&mut self, path: &str) -> Read<Option<Flow>> {
        let file = self.files.get(path).cloned();
        self.charge(file.as_ref().map_or(0, Flow::len))?;
        Ok(file)
    }

    fn push(&mut self, simple: Simple) -> Read<()> {
        if self.commands.len() >= MAX_COMMANDS {
            return Err(TOO_MANY);
        }
        self.commands.push(simple);
        Ok(())
    }

    /// The scripts that a program runs and that are known. Where the others come from is noted.
    fn scripts(&self, simple: &mut Simple, path: &str, reads: Option<&Flow>, here: &Here<'_>) -> Vec<String> {
        let mut scripts = programs::passed_on(simple);
        if scripts.iter().any(|script| script.contains(UNKNOWN)) {
            simple.runs = here.unknown;
        }
        let source = programs::source(simple);
        let flow = match &source {
            Source::Input => reads,
            Source::File(path) => self.files.get(path),
            Source::Itself if path.contains('/') => self.files.get(path),
            Source::Itself => None,
        };
        let Some(flow) = flow else { return scripts };
        if flow.text.contains(UNKNOWN) {
            simple.runs = simple.runs | flow.origin;
        }
        if flow.unknown && source == Source::Input {
            simple.runs.piped = !programs::speaks_another_language(simple.name());
        }
        if !flow.is_all_unknown() && programs::shell_runs(simple.name(), &source, &flow.text) {
            scripts.push(flow.text.clone());
        }
        scripts
    }

    /// What a program prints that runs no other.
    fn prints(&mut self, simple: &Simple, reads: Option<&Flow>, here: &Here<'_>) -> Read<Flow> {
        let unknown = || Flow::unknown(Origin::default());
        let prints = match simple.name() {
            "echo" | "printf" => here.known(printed::by(simple, self.left)),
            "cat" if simple.operands().next().is_some() => {
                let mut prints = Flow::default();
                for path in simple.operands() {
                    prints.append(self.copied(path)?.unwrap_or_else(unknown));
                }
                return Ok(prints);
            }
            "cat" | "tee" => reads.cloned().unwrap_or_else(unknown),
            name if programs::is_silent(name) => Flow::default(),
            _ => {
                let through = reads.map(|flow| flow.origin).unwrap_or_default();
                Flow::unknown(programs::origin(simple) | through)
            }
        };
        self.charge(prints.len())?;
        Ok(prints)
    }

    /// Puts what was printed into a file, or into the command that reads it.
    fn write(&mut self, path: &str, flow: &Flow, here: &Here<'_>) -> Read<()> {
        self.charge(flow.len())?;
        match self.files.take_reader(path) {
            Some(reader) => {
                self.add(&reader, here.inside(Some(Rc::new(flow.clone()))))?;
            }
            None => self.files.append(path, flow.clone()),
        }
        Ok(())
    }
}

impl Here<'_> {
    /// A text that stands in the command.
    fn known(&self, text: String) -> Flow {
        let origin = if text.contains(UNKNOWN) { self.unknown } else { Origin::default() };
        Flow { text, unknown: false, origin }
    }

    /// A shell that is started here.
    fn inside(&self, reads: Option<Rc<Flow>>) -> Around<'_> {
        Around { depth: self.depth + 1, scope: Some(self.scope), reads }
    }
}

/// One program while it is read.
#[derive(Default)]
struct Parsed {
    words: Vec<String>,
    writes: Vec<String>,
    reads: Option<Input>,
    redirect: Option<String>,
}

enum Input {
    Text(String),
    File(String),
}

/// By the token that opens a group, what the group reads.
fn inputs_of_groups(tokens: &[Token], inputs: &BTreeMap<usize, usize>) -> BTreeMap<usize, Input> {
    let input = |at: usize| match (tokens.get(at.checked_sub(1)?)?, tokens.get(at)?) {
        (Token::Operator(operator), Token::Word(path)) if operator == "<" => Some(Input::File(path.clone())),
        (_, Token::Word(text) | Token::Document(text)) => Some(Input::Text(text.clone())),
        _ => None,
    };
    inputs.iter().filter_map(|(group, at)| Some((*group, input(*at)?))).collect()
}

impl Parsed {
    fn word(&mut self, word: String) {
        match self.redirect.take().as_deref() {
            Some("<<<") => self.reads = Some(Input::Text(word)),
            Some("<") => self.reads = Some(Input::File(word)),
            Some(operator) if operator.contains('>') => self.writes.push(word),
            Some(_) => {}
            None => self.words.push(word),
        }
    }
}
