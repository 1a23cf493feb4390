//! Running one statement, prepared once per connection.

use rusqlite::types::ValueRef;
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

/// The most bytes of the rows of a page. A page that reaches it is shorter than asked for.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// The rows of a page, and whether there are more.
pub(super) struct PageRows<T> {
    pub(super) rows: Vec<T>,
    pub(super) has_more: bool,
}

/// At most `wanted` rows, of at most so many bytes as a page may have, but always one. The statement must return one row
/// more than `wanted` if there is one.
pub(super) fn page<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    wanted: usize,
    mut read_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<PageRows<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query(values)?;
    let (mut rows, mut bytes) = (Vec::new(), 0);
    while let Some(row) = found.next()? {
        bytes += row_bytes(row, columns)?;
        if rows.len() == wanted || (bytes > MAX_PAGE_BYTES && !rows.is_empty()) {
            return Ok(PageRows { rows, has_more: true });
        }
        rows.push(read_row(row)?);
    }
    Ok(PageRows { rows, has_more: false })
}

fn row_bytes(row: &Row<'_>, columns: usize) -> rusqlite::Result<usize> {
    let bytes = |column| match row.get_ref(column)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Ok(bytes.len()),
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => Ok(size_of::<i64>()),
    };
    (0..columns).map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(rows: &str, wanted: usize) -> (Vec<i64>, bool) {
        let connection = Connection::open_in_memory().unwrap();
        let sql = format!("SELECT length(column1), column1 FROM (VALUES {rows})");
        let page = page(&connection, &sql, [], wanted, |row| row.get(0)).unwrap();
        (page.rows, page.has_more)
    }

    #[test]
    fn a_page_is_bounded_in_rows_and_in_bytes() {
        let small = "(zeroblob(1)), (zeroblob(2)), (zeroblob(3))";
        assert_eq!(lengths(small, 2), (vec![1, 2], true));
        assert_eq!(lengths(small, 3), (vec![1, 2, 3], false));
        let large = "(zeroblob(5000000)), (zeroblob(3000000)), (zeroblob(2000000))";
        assert_eq!(lengths(large, 9), (vec![5_000_000, 3_000_000], true));
        assert_eq!(lengths("(zeroblob(9000000)), (zeroblob(1))", 9), (vec![9_000_000], true));
        assert_eq!(lengths("(zeroblob(9000000))", 9), (vec![9_000_000], false));
    }
}
