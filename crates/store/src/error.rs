//! What can go wrong in a store.

use std::path::PathBuf;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing of that name is there.
    #[error("there is no {what}")]
    NotFound {
        /// What was looked for, with its id.
        what: String,
    },
    /// Something of that name is there already.
    #[error("{what} exists already")]
    AlreadyExists {
        /// What was to be made, with its id.
        what: String,
    },
    /// Somebody else wrote first.
    #[error("{what} is at {actual}, not at {expected}: somebody else wrote in between")]
    Stale {
        /// What was written to.
        what: String,
        /// The sequence or version that the writer expected.
        expected: u64,
        /// The one that is there.
        actual: u64,
    },
    /// The cursor was not made by this store for this listing.
    #[error("the cursor is not one that this listing returned")]
    InvalidCursor,
    /// Another process has the data directory open.
    #[error("{} is in use by another petasos process; stop it, or use another --data-dir", path.display())]
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// The database was written by a newer release.
    #[error(
        "{} has schema version {found}, and this release knows versions up to {known}; \
         use the newer petasos that wrote it, or another --data-dir", path.display()
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The highest version that this release knows.
        known: u32,
    },
    /// The database is damaged, or is no Petasos database at all.
    #[error("{} cannot be used: {problem}. It was left as it is; restore it from a backup, or use another --data-dir", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What was found.
        problem: String,
    },
    /// A part of the database is damaged. The rest of it goes on.
    #[error(
        "{what} cannot be read from {}: {problem}. The database is damaged there; \
         restore it from a backup, or delete what is damaged", path.display()
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// The session, agent or key that is hit.
        what: String,
        /// What was found.
        problem: String,
    },
    /// One backup is made at a time.
    #[error("a backup is being made already; wait until it is done")]
    BackupUnderWay,
    /// The store is shutting down.
    #[error("the store is closed")]
    Closed,
    /// There is no room for what was to be written.
    #[error("the disk or the database is full: {context}")]
    Full {
        /// What was being done.
        context: String,
        /// How that was noticed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database's file is not the one that was opened any more.
    #[error("{} was replaced or removed while the server runs; restart the server", path.display())]
    Replaced {
        /// Where it was.
        path: PathBuf,
    },
    /// The disk or the database failed.
    #[error("the store failed: {context}")]
    Failed {
        /// What was being done.
        context: String,
        /// Why it failed.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
