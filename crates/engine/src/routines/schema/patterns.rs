//! Regular expressions of schemas, none of which can take longer than its bound.

use std::collections::HashMap;
use std::rc::Rc;

use regex::RegexBuilder;

/// The size of a compiled expression that is matched at full speed.
const SMALL_BYTES: usize = 32 * 1024;
/// The most that a compiled expression may take.
const MAX_COMPILED_BYTES: usize = 512 * 1024;
/// How often an expression with look-around or back-references may start again.
const MAX_BACKTRACKS: usize = 10_000;
/// The longest text that an expression with look-around or back-references is matched against.
const MAX_BACKTRACKED_BYTES: usize = 4_096;

/// A compiled regular expression.
pub(super) enum Pattern {
    /// Takes time that grows with the text only.
    Linear { regex: regex::Regex, steps_per_byte: u64 },
    /// Has look-around or back-references, and a limit on how often it tries again.
    Backtracking(Box<fancy_regex::Regex>),
}

/// The expressions that were compiled so far.
#[derive(Default)]
pub(super) struct Patterns(HashMap<String, Rc<Pattern>>);

impl Patterns {
    /// The steps that compiling an expression costs; none if it is there.
    pub(super) fn compile_steps(&self, pattern: &str) -> u64 {
        if self.0.contains_key(pattern) { 0 } else { 5_000 + 50 * pattern.len() as u64 }
    }

    pub(super) fn get(&mut self, pattern: &str) -> Result<Rc<Pattern>, String> {
        if let Some(known) = self.0.get(pattern) {
            return Ok(Rc::clone(known));
        }
        let compiled = Rc::new(Pattern::compile(pattern)?);
        self.0.insert(pattern.to_owned(), Rc::clone(&compiled));
        Ok(compiled)
    }
}

impl Pattern {
    /// Reads an expression of ECMA 262, which is what schemas are written in.
    pub(super) fn compile(pattern: &str) -> Result<Pattern, String> {
        let invalid = || format!("{pattern:?} is not a regular expression, or takes too much memory");
        let translated = jsonschema_regex::to_rust_regex(pattern).map_err(|()| invalid())?;
        for (bytes, steps_per_byte) in [(SMALL_BYTES, 4), (MAX_COMPILED_BYTES, 64)] {
            if let Ok(regex) = RegexBuilder::new(&translated).size_limit(bytes).build() {
                return Ok(Pattern::Linear { regex, steps_per_byte });
            }
        }
        let mut builder = fancy_regex::RegexBuilder::new(&translated);
        builder.backtrack_limit(MAX_BACKTRACKS).delegate_size_limit(MAX_COMPILED_BYTES);
        builder.build().map(|regex| Pattern::Backtracking(Box::new(regex))).map_err(|_| invalid())
    }

    /// The steps that matching a text costs at most.
    pub(super) fn match_steps(&self, text: &str) -> u64 {
        let bytes = text.len() as u64;
        match self {
            Pattern::Linear { steps_per_byte, .. } => 1 + bytes * steps_per_byte,
            Pattern::Backtracking(_) => 1_000 + bytes * 100,
        }
    }

    /// Whether the expression is found in a text; an error says which bound kept it from being known.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, String> {
        match self {
            Pattern::Linear { regex, .. } => Ok(regex.is_match(text)),
            Pattern::Backtracking(_) if text.len() > MAX_BACKTRACKED_BYTES => Err(format!(
                "a pattern with look-around or back-references is matched against at most {MAX_BACKTRACKED_BYTES} \
                 bytes, and the text has {}",
                text.len()
            )),
            Pattern::Backtracking(regex) => regex
                .is_match(text)
                .map_err(|_| format!("the pattern {:?} takes too long on this value", regex.as_str())),
        }
    }
}
