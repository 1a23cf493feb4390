//! The one thread that writes.
//!
//! It takes whatever is queued, runs it in one transaction and commits once: many sessions share one sync of
//! the disk. Each write has a savepoint of its own, so that one that fails undoes nothing but itself. Nobody is
//! told that a write succeeded before the commit returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::columns::failed;
use super::lock::Lock;
use crate::error::{Error, Result};

/// Writes that wait; whoever has one more waits before it is queued.
const QUEUE: usize = 1024;
/// Writes that share a commit.
const BATCH: usize = 256;

/// Why no write of a batch was kept.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Work that the thread does on its own between batches. It says whether there is more to do.
pub(super) type Chore = fn(&Connection) -> Result<bool>;

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<Result<()>>>>,
}

impl Writer {
    /// Starts the thread. It keeps the lock until it has closed the connection.
    pub(super) fn start(connection: Connection, lock: Lock, chore: Chore) -> Result<Writer> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || {
                run(&connection, jobs, chore);
                let closed = close(connection);
                drop(lock);
                closed
            })
            .map_err(failed("start the thread that writes"))?;
        Ok(Writer { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
    }

    /// Runs `work` in a transaction, and returns after it is committed and on the disk.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (answer, answered) = oneshot::channel();
        let write = Write { work: Some(work), outcome: None, answer };
        queue.ok_or(Error::Closed)?.send(Box::new(write)).await.map_err(|_| Error::Closed)?;
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// Lets the thread finish what is queued, and waits until it has closed the database.
    pub(super) async fn stop(&self) -> Result<()> {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return Ok(()) };
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(closed)) => closed,
            _ => Err(failed("close the store")("the thread that writes panicked")),
        }
    }
}

/// A write in the queue.
trait Job: Send {
    /// Does the work, and says whether to keep what it did.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Tells whoever waits, once it is known whether the batch was kept.
    fn answer(self: Box<Self>, committed: std::result::Result<(), Cause>);
}

struct Write<T, F> {
    work: Option<F>,
    outcome: Option<Result<T>>,
    answer: oneshot::Sender<Result<T>>,
}

impl<T, F> Job for Write<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T> + Send,
{
    fn run(&mut self, connection: &Connection) -> bool {
        let Some(work) = self.work.take() else { return false };
        // A bug in one write must not take the writer away from everyone else.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(connection)))
            .unwrap_or_else(|_| Err(failed("write")("the write panicked and was undone")));
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), Cause>) {
        let result = match (self.outcome, committed) {
            (Some(Err(error)), _) => Err(error),
            (_, Err(cause)) => Err(failed("commit")(Box::new(cause))),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => Err(Error::Closed),
        };
        // Whoever asked may have gone away.
        let _ = self.answer.send(result);
    }
}

/// Serves the queue until every sender is gone and it is empty.
fn run(connection: &Connection, mut jobs: mpsc::Receiver<Box<dyn Job>>, chore: Chore) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut busy = true;
    loop {
        if busy {
            // There is a chore to do, so take what is there and do not wait for more.
            match jobs.try_recv() {
                Ok(job) => batch.push(job),
                Err(mpsc::error::TryRecvError::Empty) => {}
                Err(mpsc::error::TryRecvError::Disconnected) => return,
            }
            while batch.len() < BATCH
                && let Ok(job) = jobs.try_recv()
            {
                batch.push(job);
            }
        } else if jobs.blocking_recv_many(&mut batch, BATCH) == 0 {
            return;
        }
        if !batch.is_empty() {
            serve(connection, &mut batch);
        }
        busy = do_chore(connection, chore);
    }
}

/// Runs a batch and answers all of it.
fn serve(connection: &Connection, batch: &mut Vec<Box<dyn Job>>) {
    let committed = commit(connection, batch);
    if let Err(cause) = &committed {
        tracing::error!(%cause, writes = batch.len(), "a commit failed; its writes were refused");
        undo(connection);
    }
    for job in batch.drain(..) {
        job.answer(committed.clone());
    }
}

/// Runs a batch in one transaction.
fn commit(connection: &Connection, batch: &mut [Box<dyn Job>]) -> std::result::Result<(), Cause> {
    let execute = |sql: &str| -> std::result::Result<(), Cause> {
        let run = || connection.prepare_cached(sql)?.execute([]);
        run().map(drop).map_err(|error| Arc::new(error) as Cause)
    };
    execute("BEGIN IMMEDIATE")?;
    for job in batch {
        execute("SAVEPOINT write")?;
        let keep = job.run(connection);
        // A full or failing disk can end the whole transaction, and with it the writes before this one.
        if connection.is_autocommit() {
            return Err(Arc::from(Box::from("the disk failed in the middle of the transaction")));
        }
        if !keep {
            execute("ROLLBACK TO write")?;
        }
        execute("RELEASE write")?;
    }
    execute("COMMIT")
}

/// Ends a transaction that failed, so that the next one can begin.
fn undo(connection: &Connection) {
    if !connection.is_autocommit()
        && let Err(error) = connection.execute_batch("ROLLBACK")
    {
        tracing::error!(%error, "a failed transaction could not be undone");
    }
}

/// Does a part of the chore in a transaction of its own, and says whether there is more.
fn do_chore(connection: &Connection, chore: Chore) -> bool {
    let step = || {
        let transaction = connection.unchecked_transaction().map_err(failed("begin"))?;
        let more = chore(&transaction)?;
        transaction.commit().map_err(failed("commit"))?;
        Ok(more)
    };
    step().unwrap_or_else(|error: Error| {
        // It is tried again after the next write, not at once.
        tracing::warn!(%error, "housekeeping of the store failed");
        undo(connection);
        false
    })
}

/// Copies the write-ahead log into the database and closes it.
fn close(connection: Connection) -> Result<()> {
    let checkpoint = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    checkpoint.map_err(failed("checkpoint the database"))?;
    connection.close().map_err(|(_, error)| failed("close the database")(error))
}
