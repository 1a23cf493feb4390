//! A page of a listing, as every listing answers.

use schemars::JsonSchema;
use serde::Serialize;

/// A part of a listing.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Page")]
pub(crate) struct Page<T> {
    /// The entries.
    data: Vec<T>,
    /// Where to go on; null at the end.
    next_cursor: Option<String>,
}

impl<T> Page<T> {
    pub(crate) fn new(data: Vec<T>, next_cursor: Option<String>) -> Self {
        Page { data, next_cursor }
    }

    /// A page of the store, with each entry shown as `T`.
    pub(crate) fn of<S>(page: petasos_store::Page<S>, show: impl FnMut(S) -> T) -> Self {
        Page::new(page.items.into_iter().map(show).collect(), page.next.map(|cursor| cursor.0))
    }
}
