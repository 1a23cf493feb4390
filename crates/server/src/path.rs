//! Ids in paths.

use std::str::FromStr;

use crate::problem::Problem;

/// Reads an id of a path. A text that cannot be an id names nothing.
pub(crate) fn id<T: FromStr>(kind: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(kind, text))
}
