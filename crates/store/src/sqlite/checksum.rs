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

/// The most bytes of a value that is hashed together with its length.
const SHORT: usize = 55;

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
        match value {
            ValueRef::Null => self.bytes(0, &[]),
            ValueRef::Integer(value) => self.bytes(1, &value.to_le_bytes()),
            ValueRef::Real(value) => self.bytes(2, &value.to_le_bytes()),
            ValueRef::Text(value) => self.bytes(3, value),
            ValueRef::Blob(value) => self.bytes(4, value),
        }
    }

    fn bytes(&mut self, tag: u8, bytes: &[u8]) {
        let mut start = [tag; 1 + size_of::<usize>() + SHORT];
        let (head, rest) = start.split_at_mut(1 + size_of::<usize>());
        head[1..].copy_from_slice(&bytes.len().to_le_bytes());
        // Most values are short, and each update of the hasher costs more than their bytes.
        if let Some(room) = rest.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.0.update(&start[..1 + size_of::<usize>() + bytes.len()]);
        } else {
            self.0.update(head);
            self.0.update(bytes);
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

    #[test]
    fn short_and_long_values_are_hashed_alike() {
        for length in [0, 1, SHORT, SHORT + 1, 1000] {
            let text = "x".repeat(length);
            let mut hasher = Hasher::new();
            for part in [&[3][..], &length.to_le_bytes(), text.as_bytes()] {
                hasher.update(part);
            }
            assert_eq!(of(&[&text]).unwrap(), i64::from(hasher.finalize()));
        }
    }
}
