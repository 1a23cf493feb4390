//! The embedded store: one SQLite database file.
//!
//! One thread writes and shares its commits between everyone who waits (`writer`); a few connections read
//! beside it (`readers`). A file that is not ours, damaged or too new is refused and left as it is (`inspect`).
//! The other modules hold the statements, one per table or kind of thing.
//!
//! Nothing here may block a thread of the async runtime, and no type of SQLite may leave this module.

mod agents;
mod backup;
mod checksum;
mod columns;
mod connection;
mod create;
mod cursor;
mod customers;
mod database_file;
mod deliveries;
mod delivery_due;
mod delivery_list;
mod delivery_rows;
mod full_disk;
mod grants;
mod index_attempts;
mod inspect;
mod keys;
mod lock;
mod log;
mod log_range;
mod memories;
mod message_index;
mod message_rank;
mod message_words;
mod migrate;
mod readers;
mod recovery;
mod routines;
mod runs;
mod scopes;
mod session_list;
mod sessions;
mod skills;
mod statement;
mod tags;
mod usage;
mod variables;
mod wal;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use self::backup::Backups;
use self::columns::failed;
use self::inspect::Found;
use self::lock::Lock;
use self::readers::Readers;
use self::writer::Writer;
use crate::contract::{Observe, Stats};
use crate::error::Result;

/// Where the database is and how much it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The database file. It and its directory are made if they are missing.
    pub path: PathBuf,
    /// How many reads may run at the same time. Each costs up to 2 MB of page cache once it was needed.
    pub readers: usize,
    /// The largest size that the database may reach, in bytes. Writes that need more fail.
    pub max_bytes: Option<u64>,
}

impl Options {
    /// The usual settings for a database at `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Options { path: path.into(), readers: 4, max_bytes: None }
    }
}

/// A store in one SQLite file. Clones share it.
///
/// Dropping the last clone closes it too, in the background: only [`SqliteStore::close`] says when another
/// process can open it.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    readers: Readers,
    writer: Writer,
    backups: Arc<Backups>,
}

impl SqliteStore {
    /// Opens or creates the database. This blocks; it may run before there is an async runtime.
    ///
    /// `InUse` if another process has it open, `Newer` and `Corrupt` if it cannot be used, in which case it is
    /// left as it is.
    pub fn open(options: Options) -> Result<SqliteStore> {
        let Options { path, readers, max_bytes } = options;
        create::create_parent(&path)?;
        let lock = Lock::take(&path)?;
        if inspect::inspect(&path)? == Found::Nothing {
            create::create(&path)?;
        }
        let context = || format!("open {}", path.display());
        let connection = connection::open_writer(&path, max_bytes).map_err(failed(context()))?;
        if migrate::migrate(&connection, migrate::known_version()).map_err(failed(context()))? {
            tracing::info!(path = %path.display(), version = migrate::known_version(), "migrated the database");
        }
        index_attempts::count_death(&connection).map_err(failed(context()))?;
        let writer = Writer::start(connection, lock, keep_house)?;
        let shared = Shared { readers: Readers::new(path, readers), writer, backups: Arc::default() };
        Ok(SqliteStore { shared: Arc::new(shared) })
    }

    /// The files that it is kept in, with those that are there only at times.
    pub fn files(&self) -> Vec<PathBuf> {
        let database = self.shared.readers.path();
        let beside = ["", "-wal", "-shm", "-journal"].map(|suffix| create::beside(database, suffix));
        beside.into_iter().chain([lock::path_of(database)]).collect()
    }

    /// Finishes what is under way, but for a backup, copies the write-ahead log into the database and closes it for
    /// all clones.
    pub async fn close(&self) -> Result<()> {
        self.shared.backups.stop();
        self.shared.readers.close().await;
        self.shared.writer.stop().await
    }

    fn readers(&self) -> &Readers {
        &self.shared.readers
    }

    fn writer(&self) -> &Writer {
        &self.shared.writer
    }
}

impl Observe for SqliteStore {
    fn stats(&self) -> Stats {
        self.writer().stats()
    }

    fn problem(&self) -> Option<String> {
        self.writer().problem()
    }
}

/// What the thread that writes does between batches; says whether there may be more to do.
fn keep_house(connection: &rusqlite::Connection) -> Result<bool> {
    let swept = sessions::sweep(connection)?;
    Ok(message_index::index_batch(connection)? || swept)
}
