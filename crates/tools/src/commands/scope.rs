//! The variables that a command sets.

use std::collections::BTreeMap;

/// The name under which the arguments of a script or a function are kept.
pub(super) const ARGUMENTS: &str = "@";

/// Variables, over those of the command around.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    own: BTreeMap<String, String>,
    lists: BTreeMap<String, Vec<String>>,
    around: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn within(around: Option<&'a Scope<'a>>) -> Self {
        Scope { own: BTreeMap::new(), lists: BTreeMap::new(), around }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.own.insert(name.to_owned(), value.to_owned());
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
