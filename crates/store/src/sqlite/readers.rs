//! Connections that read, beside the writer and beside each other.
//!
//! They are opened when they are first needed, and a read never runs on a thread that serves the network.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::columns::failed;
use super::connection;
use crate::error::{Error, Result};

/// A few connections that read.
#[derive(Debug, Clone)]
pub(super) struct Readers {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    count: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// At most `count` connections to the database at `path`.
    pub(super) fn new(path: PathBuf, count: usize) -> Readers {
        let count = u32::try_from(count).unwrap_or(u32::MAX).clamp(1, 64);
        let permits = Arc::new(Semaphore::new(count as usize));
        Readers { shared: Arc::new(Shared { path, count, permits, idle: Mutex::default() }) }
    }

    /// Where the database is.
    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Runs `work` on one connection. All that it reads is of one moment.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.shared.permits).acquire_owned().await.map_err(|_| Error::Closed)?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let connection = shared.take()?;
            let transaction = connection.unchecked_transaction().map_err(failed("begin to read"))?;
            let result = work(&transaction);
            drop(transaction);
            shared.give_back(connection);
            drop(permit);
            result
        });
        task.await.unwrap_or_else(|error| Err(failed("read")(error)))
    }

    /// Waits for reads that are under way, refuses later ones, and closes the connections.
    pub(super) async fn close(&self) {
        let all = self.shared.permits.acquire_many(self.shared.count).await;
        self.shared.permits.close();
        drop(all);
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Shared {
    fn take(&self) -> Result<Connection> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| connection::open_reader(&self.path), Ok)
            .map_err(failed("open the database to read"))
    }

    fn give_back(&self, connection: Connection) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
    }
}
