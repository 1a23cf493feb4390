//! The variables that a command sets.

use std::collections::BTreeMap;

/// Variables, over those of the command around.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    own: BTreeMap<String, String>,
    around: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    pub(super) fn within(around: Option<&'a Scope<'a>>) -> Self {
        Scope { own: BTreeMap::new(), around }
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.own.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let own = self.own.get(name).map(String::as_str);
        own.or_else(|| self.around.and_then(|around| around.get(name)))
    }
}
