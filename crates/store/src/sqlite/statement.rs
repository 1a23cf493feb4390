//! Running one statement, prepared once per connection.

use rusqlite::{Connection, OptionalExtension, Params, Row};

/// Runs a statement that returns no rows, and says how many it changed.
pub(super) fn execute(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
    connection.prepare_cached(sql)?.execute(values)
}

/// The first row, if there is one.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read_row: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(values, read_row).optional()
}

/// All rows.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read_row)?.collect()
}
