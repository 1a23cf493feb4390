//! The one connection that writes.
//!
//! Writes that come at the same time are queued for a thread, which runs what is there in one transaction and commits
//! once: many sessions share one sync of the disk. A write that comes alone is run where it stands, since waking a
//! thread and being woken by it takes about as long as the write itself.

mod batch;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;

use self::batch::{Job, Outcome};
use super::columns::failed;
use super::database_file::DatabaseFile;
use super::full_disk::has_no_room;
use super::lock::Lock;
use crate::contract::Stats;
use crate::error::{Error, Result};

/// Writes that wait; whoever has one more waits before it is queued.
const QUEUE: usize = 1024;
/// Writes that share a commit.
const BATCH: usize = 256;
/// How many writes may be run where they stand before the thread looks after its chores.
const UNTIDY: u64 = 32;

/// A write in the queue; none to wake the thread.
type Queued = Option<Box<dyn Job>>;

/// Work that the thread does on its own between batches. It says whether there is more to do.
pub(super) type Chore = fn(&Connection) -> Result<bool>;

/// The way to write.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Queued>>>,
    desk: Arc<Desk>,
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl Writer {
    /// Starts the thread. It keeps the lock until it has closed the connection.
    pub(super) fn start(connection: Connection, lock: Lock, chore: Chore) -> Result<Writer> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let desk = Arc::new(Desk {
            file: DatabaseFile::of(&connection),
            problem: Mutex::default(),
            connection: Mutex::new(Some(connection)),
            under_way: AtomicUsize::new(0),
            commits: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        });
        let shared = Arc::clone(&desk);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || {
                run(&shared, jobs, chore);
                let closed = lock_of(&shared.connection).take().map_or(Ok(()), close);
                drop(lock);
                closed
            })
            .map_err(failed("start the thread that writes"))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), desk, thread: Mutex::new(Some(thread)) })
    }

    /// Runs `work` in a transaction, and returns after it is committed and on the disk.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let queue = lock_of(&self.queue).clone().ok_or(Error::Closed)?;
        let (mut write, mut answered) = batch::write(work);
        let is_alone = self.desk.under_way.fetch_add(1, Ordering::Relaxed) == 0;
        let _under_way = UnderWay(&self.desk.under_way);
        if is_alone && may_block() {
            match tokio::task::block_in_place(|| self.desk.write_here(write)) {
                None => {
                    self.remind(&queue);
                    return answered.try_recv().unwrap_or(Err(Error::Closed));
                }
                Some(back) => write = back,
            }
        }
        queue.send(Some(write)).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Has the thread look after its chores soon.
    pub(super) fn tidy_up(&self) {
        if let Some(queue) = lock_of(&self.queue).as_ref() {
            wake(queue);
        }
    }

    /// Writes that the thread knows nothing of leave something to do, too.
    fn remind(&self, queue: &mpsc::Sender<Queued>) {
        if self.desk.writes.load(Ordering::Relaxed).is_multiple_of(UNTIDY) {
            wake(queue);
        }
    }

    /// Why no write is taken now, if that is so.
    pub(super) fn problem(&self) -> Option<String> {
        lock_of(&self.desk.problem).clone()
    }

    /// What has been written so far, and what waits.
    pub(super) fn stats(&self) -> Stats {
        let waiting =
            lock_of(&self.queue).as_ref().map_or(0, |queue| queue.max_capacity() - queue.capacity());
        Stats {
            commits: self.desk.commits.load(Ordering::Relaxed),
            writes: self.desk.writes.load(Ordering::Relaxed),
            waiting: waiting as u64,
        }
    }

    /// Lets the thread finish what is queued, and waits until it has closed the database.
    pub(super) async fn stop(&self) -> Result<()> {
        drop(lock_of(&self.queue).take());
        let thread = lock_of(&self.thread).take();
        let Some(thread) = thread else { return Ok(()) };
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(closed)) => closed,
            _ => Err(failed("close the store")("the thread that writes panicked")),
        }
    }
}

/// Where writes are run, by one at a time.
#[derive(Debug)]
struct Desk {
    /// None after the store was closed.
    connection: Mutex<Option<Connection>>,
    /// Writes that were handed in and are not over.
    under_way: AtomicUsize,
    commits: AtomicU64,
    writes: AtomicU64,
    /// The file that was opened; none for a database in memory.
    file: Option<DatabaseFile>,
    /// Why the last writes failed, if that concerns all writes.
    problem: Mutex<Option<String>>,
}

impl Desk {
    /// Runs one write, unless somebody else is at it: then it is given back.
    fn write_here(&self, write: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let Ok(connection) = self.connection.try_lock() else { return Some(write) };
        let Some(connection) = connection.as_ref() else { return Some(write) };
        self.serve(connection, vec![write]);
        None
    }

    /// Counts a batch, runs it and answers all of it.
    fn serve(&self, connection: &Connection, batch: Vec<Box<dyn Job>>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        match self.file.as_ref().map_or(Ok(()), DatabaseFile::check) {
            Ok(()) => {
                let has_no_room = || self.file.as_ref().is_some_and(|file| has_no_room(file.path()));
                batch::serve(connection, batch, &has_no_room, &|outcome| self.note(outcome));
            }
            Err(replaced) => {
                tracing::error!(error = %replaced, writes = batch.len(), "writes were refused");
                self.note(Outcome::Problem(replaced.to_string()));
                batch::refuse(batch, self.file.as_ref().map(DatabaseFile::path).unwrap_or(Path::new("")));
            }
        }
    }

    fn note(&self, outcome: Outcome) {
        match outcome {
            Outcome::Written => *lock_of(&self.problem) = None,
            Outcome::Problem(problem) => *lock_of(&self.problem) = Some(problem),
            Outcome::NothingWritten => {}
        }
    }
}

/// Counts a write for as long as it is under way.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether another thread takes over what this one would have done in the meantime.
fn may_block() -> bool {
    Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Wakes the thread. If its queue is full, it is awake.
fn wake(queue: &mpsc::Sender<Queued>) {
    let _ = queue.try_send(None);
}

fn lock_of<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves the queue until every sender is gone and it is empty.
fn run(desk: &Desk, mut jobs: mpsc::Receiver<Queued>, chore: Chore) {
    let mut queued = Vec::with_capacity(BATCH);
    let mut busy = true;
    loop {
        // With a chore to do, nothing is waited for.
        if !busy && jobs.blocking_recv_many(&mut queued, BATCH) == 0 {
            return;
        }
        let connection = lock_of(&desk.connection);
        let Some(connection) = connection.as_ref() else { return };
        // What came while somebody else was writing shares the commit.
        while queued.len() < BATCH {
            match jobs.try_recv() {
                Ok(job) => queued.push(job),
                Err(mpsc::error::TryRecvError::Disconnected) if queued.is_empty() => return,
                Err(_) => break,
            }
        }
        let batch: Vec<_> = queued.drain(..).flatten().collect();
        if !batch.is_empty() {
            desk.serve(connection, batch);
        }
        busy = do_chore(connection, chore);
    }
}

/// Does a part of the chore in a transaction of its own, and says whether there is more.
fn do_chore(connection: &Connection, chore: Chore) -> bool {
    let step = || {
        // Dropped before its commit, it undoes what was done.
        let transaction = connection.unchecked_transaction().map_err(failed("begin"))?;
        let more = chore(&transaction)?;
        transaction.commit().map_err(failed("commit"))?;
        Ok(more)
    };
    // A bug in it must not take the writer away.
    let panicked = |_| Err(failed("tidy up")("the chore panicked and was undone"));
    catch_unwind(AssertUnwindSafe(step)).unwrap_or_else(panicked).unwrap_or_else(|error: Error| {
        // It is tried again after the next write, not at once.
        tracing::warn!(%error, "housekeeping of the store failed");
        false
    })
}

/// Copies the write-ahead log into the database and closes it.
fn close(connection: Connection) -> Result<()> {
    let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    checkpoint.map_err(failed("checkpoint the database"))?;
    connection.close().map_err(|(_, error)| failed("close the database")(error))
}

#[cfg(test)]
mod tests;
