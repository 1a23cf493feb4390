//! Looks at a database file before it is used, and never changes it.
//!
//! What is not ours, or is damaged in a way that shows, is refused here with the reason. A small database is read
//! whole, its indexes against its tables. A large one is not, since that would take longer than the start itself:
//! there, rows are checked when they are read (`checksum`, `log_range`).

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use super::columns::failed;
use super::{connection, migrate, wal};
use crate::error::{Error, Result};

const HEADER: usize = 100;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The largest database that is read whole at every start; it takes some 2 ms per MB.
const READ_WHOLE: u64 = 16 * 1024 * 1024;

/// What is at the path of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing: a new database belongs there.
    Nothing,
    /// A database that this release can use.
    Database,
}

/// Says what is at `path`, or why it cannot be used.
pub(super) fn inspect(path: &Path) -> Result<Found> {
    let context = || format!("read {}", path.display());
    let corrupt = |problem: String| Error::Corrupt { path: path.to_owned(), problem };
    let log = wal::read(path).map_err(failed(context()))?;
    let mut header = Vec::with_capacity(HEADER);
    let length = match File::open(path) {
        Ok(file) => {
            let length = file.metadata().map_err(failed(context()))?.len();
            file.take(HEADER as u64).read_to_end(&mut header).map_err(failed(context()))?;
            length
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match log.page_count {
                None => Ok(Found::Nothing),
                Some(_) => {
                    Err(corrupt("its write-ahead log is there, but the database itself is not".into()))
                }
            };
        }
        Err(error) => return Err(failed(context())(error)),
    };
    // A new database is renamed into place when it is whole, so an empty file was one that lost everything.
    if length == 0 {
        return Err(corrupt("it was cut: the file is empty".into()));
    }
    if let Some(problem) = header_problem(&header, &log).or_else(|| size_problem(&header, length, &log)) {
        return Err(corrupt(problem));
    }
    let opened = connection::open_to_inspect(path, log.page_count.is_some());
    let connection = opened.map_err(|error| sqlite_problem(path, error))?;
    check_schema(path, &connection)?;
    if length <= READ_WHOLE {
        check_whole(path, &connection)?;
    }
    Ok(Found::Database)
}

/// What the first bytes say against using the file.
fn header_problem(header: &[u8], log: &wal::Wal) -> Option<String> {
    if header.len() < HEADER || !header.starts_with(MAGIC) {
        return Some("it is not an SQLite database".into());
    }
    // New databases are renamed into place with this set, so it is in the file even after a crash.
    if number(header, 68) != migrate::APPLICATION_ID {
        return Some("it is an SQLite database of another application".into());
    }
    // SQLite would pass over the log, and with it over everything that was acknowledged last.
    (log.page_count.is_some() && header.get(18..20) != Some(&[2, 2]))
        .then(|| "its header is damaged: it denies the write-ahead log that is there".into())
}

/// Whether a part of the file is missing.
fn size_problem(header: &[u8], length: u64, log: &wal::Wal) -> Option<String> {
    // One stands for 65536, which does not fit into two bytes.
    let page_size = match number(header, 16) >> 16 {
        1 => 65536,
        size => u64::from(size),
    };
    if page_size < 512 {
        return Some(format!("its header is damaged (pages of {page_size} bytes)"));
    }
    let pages = log.page_count.unwrap_or(u64::from(number(header, 28)));
    let missing = (length / page_size + 1..=pages).find(|page| !log.pages.contains(page))?;
    Some(format!(
        "it was cut: it should have {pages} pages of {page_size} bytes, and page {missing} is missing"
    ))
}

/// Whether SQLite can read the schema, and finds there what a database of its version contains.
fn check_schema(path: &Path, connection: &Connection) -> Result<()> {
    let known = migrate::known_version();
    let read = || rusqlite::Result::Ok((migrate::version(connection)?, migrate::schema(connection)?));
    let (found, schema) = read().map_err(|error| sqlite_problem(path, error))?;
    if found > known {
        return Err(Error::Newer { path: path.to_owned(), found, known });
    }
    let expected =
        migrate::expected_schema(found).map_err(failed("make an empty database to compare with"))?;
    match expected.iter().find(|entry| !schema.contains(entry)) {
        None if found > 0 => Ok(()),
        None => Err(Error::Corrupt { path: path.to_owned(), problem: "its schema has no version".into() }),
        Some((kind, name, _)) => {
            let problem = format!("its schema is damaged: the {kind} {name} is missing or was changed");
            Err(Error::Corrupt { path: path.to_owned(), problem })
        }
    }
}

/// Whether every page is what it should be, and every index says the same as its table.
fn check_whole(path: &Path, connection: &Connection) -> Result<()> {
    let read = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get::<_, String>(0));
    match read.map_err(|error| sqlite_problem(path, error))?.as_str() {
        "ok" => Ok(()),
        problem => Err(Error::Corrupt { path: path.to_owned(), problem: problem.to_owned() }),
    }
}

/// Tells a damaged file from one that could not be read this time.
fn sqlite_problem(path: &Path, error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::SystemIoFailure
            | ErrorCode::PermissionDenied
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::OutOfMemory,
        ) => failed(format!("read {}", path.display()))(error),
        _ => Error::Corrupt { path: path.to_owned(), problem: error.to_string() },
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u32::from_be_bytes(*chunk))
}
