//! The variables that a command sets.

use std::collections::BTreeMap;

/// The name under which the arguments of a script or a function are kept.
pub(super) const ARGUMENTS: &str = "@";

/// How many names in a row may stand for one another.
const MAX_REFERENCES: usize = 8;

/// Variables, over those of the command around.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    own: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    /// Names that stand for other variables.
    references: BTreeMap<String, String>,
    around: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn within(around: Option<&'a Scope<'a>>) -> Self {
        Scope { own: BTreeMap::new(), lists: BTreeMap::new(), references: BTreeMap::new(), around }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        let name = self.meant(name).to_owned();
        self.own.insert(name, value.to_owned());
    }

    /// `declare -n name=other`.
    pub(super) fn refer(&mut self, name: &str, other: &str) {
        if name != other {
            self.references.insert(name.to_owned(), other.to_owned());
        }
    }

    /// The variable that a name stands for. One that stands for itself in the end is left alone.
    pub(super) fn meant<'n>(&'n self, name: &'n str) -> &'n str {
        let mut meant = name;
        for _ in 0..MAX_REFERENCES {
            match self.reference(meant) {
                Some(other) => meant = other,
                None => return meant,
            }
        }
        name
    }

    fn reference(&self, name: &str) -> Option<&str> {
        let own = self.references.get(name).map(String::as_str);
        own.or_else(|| self.around.and_then(|around| around.reference(name)))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let own = self.own.get(name).map(String::as_str);
        own.or_else(|| self.around.and_then(|around| around.get(name)))
    }

    /// Sets an array, or the arguments.
    pub(super) fn set_list(&mut self, name: &str, values: Vec<String>) {
        self.lists.insert(name.to_owned(), values);
    }

    pub(super) fn list(&self, name: &str) -> Option<&[String]> {
        let own = self.lists.get(name).map(Vec::as_slice);
        own.or_else(|| self.around.and_then(|around| around.list(name)))
    }
}
