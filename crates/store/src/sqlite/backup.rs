//! Copies of the whole database while it is in use.
//!
//! A copy is of one moment: a connection that reads holds its snapshot until the last page is copied. Writers go on
//! meanwhile; only the write-ahead log cannot be cut back before the copy is done.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use rusqlite::backup::{Backup as Copying, StepResult};

use super::columns::failed;
use super::create::{beside, create_empty, create_parent, remove, sync_parent};
use super::{SqliteStore, connection};
use crate::contract::Backup;
use crate::error::{Error, Result};

/// Pages that are copied before looking whether the store is to be closed.
const PAGES_AT_ONCE: i32 = 1024;
/// What a copy is called until it is complete. There is one at a time, so the next one removes what a crash left.
const UNFINISHED: &str = "petasos-unfinished.db";

/// What backups and the rest of the store have to know of each other.
#[derive(Debug, Default)]
pub(super) struct Backups {
    under_way: AtomicBool,
    stopping: AtomicBool,
}

impl Backups {
    /// Stops the backup that is under way, and all that are to come.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }
}

/// The right to make a backup. There is one.
struct Turn(Arc<Backups>);

impl Turn {
    fn take(backups: &Arc<Backups>) -> Result<Turn> {
        match backups.under_way.swap(true, Ordering::AcqRel) {
            false => Ok(Turn(Arc::clone(backups))),
            true => Err(Error::BackupUnderWay),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.under_way.store(false, Ordering::Release);
    }
}

impl Backup for SqliteStore {
    fn backup(&self, to: PathBuf) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async move {
            let turn = Turn::take(&self.shared.backups)?;
            // The copy is finished even if nobody waits for it any more, so it has the turn and not this future.
            self.readers().read(move |source| back_up(source, &to, &turn)).await
        })
    }
}

/// Makes the copy under another name, and gives it its own when it is whole and on the disk.
fn back_up(source: &Connection, to: &Path, turn: &Turn) -> Result<u64> {
    if to.exists() {
        return Err(Error::AlreadyExists { what: format!("the file {}", to.display()) });
    }
    create_parent(to)?;
    let new = to.with_file_name(UNFINISHED);
    let clear = || ["", "-journal", "-wal", "-shm"].iter().try_for_each(|end| remove(&beside(&new, end)));
    clear().map_err(failed("remove what is left of an unfinished backup"))?;
    let made = copy(source, &new, turn).and_then(|()| {
        let context = || format!("write {}", to.display());
        let file = File::open(&new).map_err(failed(context()))?;
        file.sync_all().map_err(failed(context()))?;
        fs::rename(&new, to).map_err(failed(context()))?;
        sync_parent(to).map_err(failed(context()))?;
        file.metadata().map(|metadata| metadata.len()).map_err(failed(context()))
    });
    if made.is_err()
        && let Err(error) = clear()
    {
        tracing::warn!(%error, path = %new.display(), "an unfinished backup could not be removed");
    }
    made
}

fn copy(source: &Connection, new: &Path, turn: &Turn) -> Result<()> {
    let context = || format!("copy the database to {}", new.display());
    create_empty(new).map_err(failed(context()))?;
    let mut target = connection::open_copy(new).map_err(failed(context()))?;
    // A transaction has its snapshot from its first read on.
    let pin = "SELECT count(*) FROM sqlite_schema";
    source.query_row(pin, [], |_| Ok(())).map_err(failed(context()))?;
    let copying = Copying::new(source, &mut target).map_err(failed(context()))?;
    loop {
        if turn.0.stopping.load(Ordering::Relaxed) {
            return Err(Error::Closed);
        }
        match copying.step(PAGES_AT_ONCE).map_err(failed(context()))? {
            StepResult::More => {}
            StepResult::Done => break,
            // Nobody else uses the copy, and readers of the source never wait for its writer.
            _ => return Err(failed(context())("the database is locked")),
        }
    }
    drop(copying);
    target.close().map_err(|(_, error)| failed(context())(error))
}
