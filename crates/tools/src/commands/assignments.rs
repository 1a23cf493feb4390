//! The words that set variables and aliases.

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
        if let Some((list, index)) = name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            self.set_element(list, index, value)?;
        }
        Ok(())
    }

    /// `name[index]=value`. Where indexes are left out the values are those that are there, in the order they came.
    fn set_element(&mut self, list: &str, index: &str, value: String) -> Read<()> {
        let mut values = self.scope.list(list).unwrap_or_default().to_vec();
        self.script.charge(values.iter().map(|value| value.len() + 1).sum())?;
        match index.parse::<usize>().ok().and_then(|index| values.get_mut(index)) {
            Some(old) => *old = value,
            None => values.push(value),
        }
        self.scope.set_list(list, values);
        Ok(())
    }

    /// `declare -n name=other`.
    pub(super) fn refer(&mut self, words: &[String]) {
        if words.iter().any(|word| word.starts_with('-') && word.contains('n')) {
            for (name, other) in words.iter().filter_map(|word| assignment(word)) {
                self.scope.refer(name, other);
            }
        }
    }

    /// `alias name=command`. A shell may take no aliases, so the name stays a program as well.
    pub(super) fn name_alias(&mut self, words: &[String]) {
        for (name, command) in words.iter().filter_map(|word| word.split_once('=')) {
            self.script.aliases.insert(name.to_owned(), format!("{command} \"$@\""));
        }
    }
}
