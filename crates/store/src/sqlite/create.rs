//! Makes a new database.
//!
//! It is made whole under another name and renamed into place, so that a crash leaves either nothing or a
//! database that is complete and marked as ours.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::columns::failed;
use super::{connection, migrate};
use crate::error::Result;

/// Makes the directory that a database lives in, for its owner only, unless it is there.
pub(super) fn create_parent(path: &Path) -> Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(parent).map_err(failed(format!("create the directory {}", parent.display())))
}

/// Makes an empty database at `path`, where there is nothing.
pub(super) fn create(path: &Path) -> Result<()> {
    let new = beside(path, ".new");
    // A crash may have left these behind.
    for suffix in [".new", ".new-journal", ".new-wal", ".new-shm"] {
        remove(&beside(path, suffix)).map_err(failed("remove what is left of an unfinished database"))?;
    }
    let context = || format!("create {}", new.display());
    create_empty(&new).map_err(failed(context()))?;
    let database = connection::open_writer(&new, None).map_err(failed(context()))?;
    migrate::migrate(&database, migrate::known_version()).map_err(failed(context()))?;
    // Closing the only connection moves everything into the one file.
    database.close().map_err(|(_, error)| failed(context())(error))?;
    File::open(&new).and_then(|file| file.sync_all()).map_err(failed(context()))?;
    fs::rename(&new, path).map_err(failed(format!("rename {} to {}", new.display(), path.display())))?;
    sync_parent(path).map_err(failed(format!("sync the directory of {}", path.display())))
}

/// The path with this at its end.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Makes an empty file for its owner only. SQLite gives the files beside a database the mode of the database.
pub(super) fn create_empty(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Makes what was done in a file's directory durable.
#[cfg(unix)]
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all())
}

#[cfg(not(unix))]
pub(super) fn sync_parent(_path: &Path) -> io::Result<()> {
    Ok(())
}
