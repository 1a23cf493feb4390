//! The words that set variables.

use super::groups::{assignment, is_assignment};
use super::lexer::Lexer;
use super::script::Read;

impl Lexer<'_, '_> {
    /// The first one after a name makes an assignment of the word, unless it is quoted.
    pub(super) fn equals_sign(&mut self) {
        self.push('=');
        if self.assigns.is_none() {
            let word = self.word.as_deref().unwrap_or_default();
            let is_here = self.redirection().is_none() && self.position.takes_assignments();
            self.assigns = Some(is_here && !self.quoted && is_assignment(word));
        }
    }

    /// Sets the variable that a word sets.
    pub(super) fn set_variable(&mut self, word: &str) -> Read<()> {
        let Some((name, value)) = assignment(word) else { return Ok(()) };
        let (name, before) = match name.strip_suffix('+') {
            Some(name) => (name, self.scope.get(name).unwrap_or_default()),
            None => (name, ""),
        };
        // A word in another place may set it for the program that `env` runs, but takes no value away.
        if !self.position.takes_assignments() && self.scope.get(name).is_some() {
            return Ok(());
        }
        self.script.charge(before.len())?;
        let value = format!("{before}{value}");
        self.scope.set(name, &value);
        Ok(())
    }
}
