//! Checksums of rows, written with them and checked whenever they are read.
//!
//! SQLite keeps none, so a byte that changed on the disk would be served as the truth. A checksum covers the values
//! of a row and, where they are not among them, what the row was looked up by: a row that is found under a wrong
//! name is as wrong as one with a wrong value. Rows from before there were checksums have none and are not checked.

use std::ops::Range;

use crc32fast::Hasher;
use rusqlite::types::{ToSqlOutput, Type, ValueRef};
use rusqlite::{Row, ToSql};

use super::columns::Nanos;

/// A row is not what was written.
#[derive(Debug, thiserror::Error)]
#[error("it does not match its checksum")]
struct Mismatch;

/// A checksum in the making.
#[derive(Debug, Clone, Default)]
pub(super) struct Checksum(Hasher);

impl Checksum {
    /// Adds values that are about to be written.
    pub(super) fn values(mut self, values: &[&dyn ToSql]) -> rusqlite::Result<Self> {
        for value in values {
            match value.to_sql()? {
                ToSqlOutput::Borrowed(value) => self.add(value),
                ToSqlOutput::Owned(value) => self.add(ValueRef::from(&value)),
                other => return Err(unknown(&other)),
            }
        }
        Ok(self)
    }

    /// Adds columns of a row that is read.
    pub(super) fn columns(mut self, row: &Row<'_>, columns: Range<usize>) -> rusqlite::Result<Self> {
        for column in columns {
            self.add(row.get_ref(column)?);
        }
        Ok(self)
    }

    /// The column's value.
    pub(super) fn finish(self) -> i64 {
        i64::from(self.0.finalize())
    }

    /// Each value says what it is and how long, so that no two rows look the same.
    fn add(&mut self, value: ValueRef<'_>) {
        let mut bytes = |tag: u8, bytes: &[u8]| {
            self.0.update(&[tag]);
            self.0.update(&bytes.len().to_le_bytes());
            self.0.update(bytes);
        };
        match value {
            ValueRef::Null => bytes(0, &[]),
            ValueRef::Integer(value) => bytes(1, &value.to_le_bytes()),
            ValueRef::Real(value) => bytes(2, &value.to_le_bytes()),
            ValueRef::Text(value) => bytes(3, value),
            ValueRef::Blob(value) => bytes(4, value),
        }
    }
}

fn unknown(value: &ToSqlOutput<'_>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(format!("{value:?} has no checksum").into())
}

/// The checksum of values that are about to be written.
pub(super) fn of(values: &[&dyn ToSql]) -> rusqlite::Result<i64> {
    Ok(Checksum::default().values(values)?.finish())
}

/// The part of a checksum that stands for a time which may be set later. It is added to the rest, so that setting
/// the time takes nothing but the time.
pub(super) fn of_time(time: Option<Nanos>) -> rusqlite::Result<i64> {
    time.map_or(Ok(0), |time| of(&[&time]))
}

/// Checks a row against the checksum in one of its columns.
pub(super) fn check(row: &Row<'_>, column: usize, actual: i64) -> rusqlite::Result<()> {
    match row.get::<_, Option<i64>>(column)? {
        Some(expected) if expected != actual => {
            Err(rusqlite::Error::FromSqlConversionFailure(column, Type::Integer, Box::new(Mismatch)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_have_different_checksums() {
        let rows: [&[&dyn ToSql]; 7] = [
            &[],
            &[&"ab"],
            &[&"a", &"b"],
            &[&"b", &"a"],
            &[&None::<i64>, &"ab"],
            &[&0i64, &"ab"],
            &[&b"ab".as_slice()],
        ];
        let sums: std::collections::BTreeSet<i64> = rows.iter().map(|row| of(row).unwrap()).collect();
        assert_eq!(sums.len(), rows.len());
    }
}
