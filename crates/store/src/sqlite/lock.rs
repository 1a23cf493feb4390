//! One process per database: a lock file that is held as long as anything has the database open.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::columns::failed;
use crate::error::{Error, Result};

/// The right to open the database. The operating system takes it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// The lock file that belongs to a database.
pub(super) fn path_of(database: &Path) -> PathBuf {
    database.with_extension("lock")
}

impl Lock {
    /// Takes the lock that belongs to a database. `InUse` if somebody has it.
    pub(super) fn take(database: &Path) -> Result<Lock> {
        let path = path_of(database);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).map_err(failed(format!("open the lock file {}", path.display())))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path }),
            Err(TryLockError::Error(error)) => Err(failed(format!("lock {}", path.display()))(error)),
        }
    }
}
