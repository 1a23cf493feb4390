//! Connections and their settings. The only place that opens a database.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

/// How long a connection waits for another one. Only checkpoints and recovery ever make one wait.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Page cache of a connection that reads, in KiB. It is taken as it is needed.
const READER_CACHE_KIB: i64 = 2048;
/// Page cache of the connection that writes. A commit that does not fit is written and read twice.
const WRITER_CACHE_KIB: i64 = 8192;
/// Pages in the write-ahead log before they are copied into the database. Under load the same pages come again
/// and again, so copying them less often saves most of the work.
const CHECKPOINT_PAGES: i64 = 4000;
/// A write-ahead log that grew beyond this is cut back once it has been copied.
const JOURNAL_SIZE_LIMIT: i64 = 32 * 1024 * 1024;
/// Statements kept ready by one connection.
const STATEMENTS: usize = 64;

/// Opens the connection that writes. With `FULL`, a commit returns after it is on the disk.
pub(super) fn open_writer(path: &Path, max_bytes: Option<u64>) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", JOURNAL_SIZE_LIMIT)?;
    // Savepoints remember pages; without this they need a writable temporary directory.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    if let Some(bytes) = max_bytes {
        let page_size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        let pages = i64::try_from(bytes).unwrap_or(i64::MAX) / page_size.max(1);
        connection.pragma_update(None, "max_page_count", pages.clamp(1, i64::from(u32::MAX - 1)))?;
    }
    Ok(connection)
}

/// Opens a connection that reads.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens an empty file that a copy is written to. It is synced when it is whole, and is thrown away before that.
pub(super) fn open_copy(path: &Path) -> rusqlite::Result<Connection> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

/// Opens a database to look at it, in a way that changes neither it nor its write-ahead log.
pub(super) fn open_to_inspect(path: &Path, has_log: bool) -> rusqlite::Result<Connection> {
    let connection =
        if has_log { open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)? } else { open_immutable(path)? };
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

/// Opens a file as one that nobody changes, so that no file is made beside it.
#[cfg(unix)]
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    use std::fmt::Write as _;
    use std::os::unix::ffi::OsStrExt as _;
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        let _ = write!(uri, "%{byte:02x}");
    }
    uri.push_str("?immutable=1");
    open(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
}

#[cfg(not(unix))]
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that opens databases")]
fn open(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    // Plans do not depend on the values of parameters. Otherwise a statement on a table with a partial index is
    // prepared anew whenever it is used.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}
