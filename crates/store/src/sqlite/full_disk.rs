//! Tells a full disk or database from everything else that can go wrong with a write.

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use rusqlite::ErrorCode;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteFailure {
    /// There is no room.
    Full,
    /// The disk failed. SQLite says so of a used-up quota of the file system too.
    Disk,
    /// Anything else.
    Other,
}

/// What an error, or what caused it, says.
pub(super) fn write_failure(error: &(dyn Error + 'static)) -> WriteFailure {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(rusqlite::Error::SqliteFailure(failure, _)) = cause.downcast_ref() {
            return match failure.code {
                ErrorCode::DiskFull => WriteFailure::Full,
                ErrorCode::SystemIoFailure => WriteFailure::Disk,
                _ => WriteFailure::Other,
            };
        }
        if let Some(failure) = cause.downcast_ref::<io::Error>()
            && is_full(failure)
        {
            return WriteFailure::Full;
        }
        next = cause.source();
    }
    WriteFailure::Other
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether the disk of a database has no room: tried with a few bytes beside it.
pub(super) fn has_no_room(database: &Path) -> bool {
    let probe = super::create::beside(database, "-probe");
    let tried = (|| {
        let mut file = std::fs::File::create(&probe)?;
        file.write_all(&[0; 64 * 1024])?;
        file.sync_all()
    })();
    // It may never have been made.
    let _ = std::fs::remove_file(&probe);
    tried.is_err_and(|error| is_full(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_told_from_other_failures_wherever_it_stands_in_the_chain() {
        let sqlite = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert_eq!(write_failure(&sqlite(rusqlite::ffi::SQLITE_FULL)), WriteFailure::Full);
        assert_eq!(write_failure(&sqlite(rusqlite::ffi::SQLITE_IOERR_WRITE)), WriteFailure::Disk);
        assert_eq!(write_failure(&sqlite(rusqlite::ffi::SQLITE_CONSTRAINT)), WriteFailure::Other);
        for kind in [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded] {
            assert_eq!(write_failure(&io::Error::from(kind)), WriteFailure::Full);
        }
        let chained = crate::error::Error::Failed {
            context: "append".to_owned(),
            source: Box::new(sqlite(rusqlite::ffi::SQLITE_FULL)),
        };
        assert_eq!(write_failure(&chained), WriteFailure::Full);
        let home = tempfile::tempdir().unwrap();
        assert!(!has_no_room(&home.path().join("petasos.db")));
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "the probe is removed");
    }
}
