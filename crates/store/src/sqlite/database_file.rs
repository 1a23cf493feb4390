//! Notices that the database's file was replaced or removed while it is open.
//!
//! SQLite goes on with the file that it has opened, so what is written then is lost with it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Error, Result};

/// The file of an open database.
#[derive(Debug)]
pub(super) struct DatabaseFile {
    path: PathBuf,
    id: (u64, u64),
}

impl DatabaseFile {
    /// That of a connection; none for a database in memory.
    pub(super) fn of(connection: &Connection) -> Option<DatabaseFile> {
        let path = connection.path().filter(|path| !path.is_empty()).map(PathBuf::from)?;
        let id = id(&std::fs::metadata(&path).ok()?);
        Some(DatabaseFile { path, id })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if another file, or none, is there now.
    pub(super) fn check(&self) -> Result<()> {
        match std::fs::metadata(&self.path) {
            Ok(found) if id(&found) == self.id => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(()),
            _ => Err(Error::Replaced { path: self.path.clone() }),
        }
    }
}

fn id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
