//! Which parts of a value were looked at by the keywords beside `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::{BTreeSet, HashSet};

/// The parts of one value that some keyword has dealt with. Stays empty for schemas that never ask for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Evaluated<'v> {
    pub(super) names: HashSet<&'v str>,
    pub(super) all_names: bool,
    /// Items before this one.
    pub(super) first_items: usize,
    pub(super) items: BTreeSet<usize>,
    pub(super) all_items: bool,
}

impl Evaluated<'_> {
    /// How much there is to copy.
    pub(super) fn weight(&self) -> usize {
        1 + self.names.len() + self.items.len()
    }

    pub(super) fn merge(&mut self, other: Self)
    where
        Self: Sized,
    {
        self.names.extend(other.names);
        self.items.extend(other.items);
        self.all_names |= other.all_names;
        self.all_items |= other.all_items;
        self.first_items = self.first_items.max(other.first_items);
    }

    pub(super) fn has_item(&self, index: usize) -> bool {
        self.all_items || index < self.first_items || self.items.contains(&index)
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.all_names || self.names.contains(name)
    }
}
