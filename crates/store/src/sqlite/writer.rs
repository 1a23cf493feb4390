//! The one connection that writes.
//!
//! Writes that come at the same time are queued for a thread, which runs what is there in one transaction and commits
//! once: many sessions share one sync of the disk. A write that comes alone is run where it stands, since waking a
//! thread and being woken by it takes about as long as the write itself. Each write has a savepoint of its own, so that
//! one that fails undoes nothing but itself. Nobody is told that a write succeeded before the commit returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

use super::columns::failed;
use super::lock::Lock;
use crate::contract::Stats;
use crate::error::{Error, Result};

/// Writes that wait; whoever has one more waits before it is queued.
const QUEUE: usize = 1024;
/// Writes that share a commit.
const BATCH: usize = 256;
/// How many writes may be run where they stand before the thread looks after its chores.
const UNTIDY: u64 = 32;

/// Why no write of a batch was kept.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

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

/// Where writes are run, by one at a time.
#[derive(Debug)]
struct Desk {
    /// None after the store was closed.
    connection: Mutex<Option<Connection>>,
    /// Writes that were handed in and are not over.
    under_way: AtomicUsize,
    commits: AtomicU64,
    writes: AtomicU64,
}

impl Writer {
    /// Starts the thread. It keeps the lock until it has closed the connection.
    pub(super) fn start(connection: Connection, lock: Lock, chore: Chore) -> Result<Writer> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let desk = Arc::new(Desk {
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
        let (answer, mut answered) = oneshot::channel();
        let mut write: Box<dyn Job> = Box::new(Write { work: Some(work), outcome: None, answer });
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

impl Desk {
    /// Runs one write, unless somebody else is at it: then it is given back.
    fn write_here(&self, write: Box<dyn Job>) -> Option<Box<dyn Job>> {
        let Ok(connection) = self.connection.try_lock() else { return Some(write) };
        let Some(connection) = connection.as_ref() else { return Some(write) };
        self.serve(connection, &mut vec![write]);
        None
    }

    /// Runs a batch and answers all of it.
    fn serve(&self, connection: &Connection, batch: &mut Vec<Box<dyn Job>>) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.writes.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let committed = commit(connection, batch);
        if let Err(cause) = &committed {
            tracing::error!(%cause, writes = batch.len(), "a commit failed; its writes were refused");
            undo(connection);
        }
        for job in batch.drain(..) {
            job.answer(committed.clone());
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
        let mut batch: Vec<_> = queued.drain(..).flatten().collect();
        if !batch.is_empty() {
            desk.serve(connection, &mut batch);
        }
        busy = do_chore(connection, chore);
    }
}

/// Runs a batch in one transaction.
fn commit(connection: &Connection, batch: &mut [Box<dyn Job>]) -> std::result::Result<(), Cause> {
    let execute = |sql: &str| -> std::result::Result<(), Cause> {
        let run = || connection.prepare_cached(sql)?.execute([]);
        run().map(drop).map_err(|error| Arc::new(error) as Cause)
    };
    let run = |job: &mut Box<dyn Job>| -> std::result::Result<bool, Cause> {
        let keep = job.run(connection);
        // A full or failing disk can end the whole transaction, and with it the writes before this one.
        let is_lost = connection.is_autocommit();
        if is_lost {
            Err(Arc::from(Box::from("the disk failed in the middle of the transaction")))
        } else {
            Ok(keep)
        }
    };
    execute("BEGIN IMMEDIATE")?;
    if let [job] = batch {
        // For one write the transaction is enough.
        let keep = run(job)?;
        return execute(if keep { "COMMIT" } else { "ROLLBACK" });
    }
    for job in batch {
        execute("SAVEPOINT write")?;
        if !run(job)? {
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

#[cfg(test)]
mod tests {
    use tokio::join;

    use super::*;

    /// A writer for a database with a table of numbers, whose `parent` is only checked at the commit.
    fn writer() -> (Writer, tempfile::TempDir) {
        let directory = tempfile::TempDir::new().unwrap();
        let connection = Connection::open_in_memory().unwrap();
        let tables = "PRAGMA foreign_keys = ON; CREATE TABLE numbers (number INTEGER PRIMARY KEY,
            parent INTEGER REFERENCES numbers (number) DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(tables).unwrap();
        let lock = Lock::take(&directory.path().join("petasos.db")).unwrap();
        (Writer::start(connection, lock, |_| Ok(false)).unwrap(), directory)
    }

    async fn insert(writer: &Writer, number: i64, parent: Option<i64>) -> Result<()> {
        let sql = "INSERT INTO numbers VALUES (?, ?)";
        writer
            .write(move |connection| {
                connection.execute(sql, (number, parent)).map(drop).map_err(failed("insert"))
            })
            .await
    }

    async fn numbers(writer: &Writer) -> i64 {
        let sql = "SELECT count(*) FROM numbers";
        let count = writer
            .write(|connection| connection.query_row(sql, [], |row| row.get(0)).map_err(failed("count")));
        count.await.unwrap()
    }

    /// Runs `writes` in one batch: they are queued while the writer is held up.
    async fn together<T>(writer: &Writer, writes: impl Future<Output = T>) -> T {
        let (release, released) = std::sync::mpsc::channel();
        let (start, started) = oneshot::channel();
        let hold = writer.write(move |_| {
            let _ = start.send(());
            released.recv().map_err(failed("hold"))
        });
        let rest = async {
            started.await.unwrap();
            join!(writes, async { release.send(()).unwrap() }).0
        };
        let (held, result) = join!(hold, rest);
        held.unwrap();
        result
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_write_alone_wakes_no_thread_and_others_share_a_commit() {
        let (writer, _directory) = writer();
        let writer = Arc::new(writer);
        let thread = |_: &Connection| Ok(std::thread::current().name().unwrap_or_default().to_owned());
        // It begins with its chore, during which nothing is alone.
        while writer.write(thread).await.unwrap() == "store-writer" {}

        let (release, released) = std::sync::mpsc::channel();
        let (start, started) = oneshot::channel();
        let held = Arc::clone(&writer);
        let held = tokio::spawn(async move {
            let hold = held.write(move |_| {
                let _ = start.send(());
                released.recv().map_err(failed("hold"))
            });
            hold.await
        });
        started.await.unwrap();
        let before = writer.stats().commits;
        let others = async { join!(writer.write(thread), writer.write(thread)) };
        let ((one, two), ()) = join!(others, async { release.send(()).unwrap() });
        assert_eq!((one.unwrap().as_str(), two.unwrap().as_str()), ("store-writer", "store-writer"));
        held.await.unwrap().unwrap();
        assert_eq!(writer.stats().commits, before + 1);
    }

    #[tokio::test]
    async fn a_failed_commit_fails_its_batch_and_no_other() {
        let (writer, _directory) = writer();
        let batch =
            async { join!(insert(&writer, 1, None), insert(&writer, 2, Some(99)), insert(&writer, 3, None)) };
        let (one, two, three) = together(&writer, batch).await;
        for result in [one, two, three] {
            assert!(matches!(result, Err(Error::Failed { .. })), "{result:?}");
        }
        assert_eq!(numbers(&writer).await, 0);
        insert(&writer, 1, None).await.unwrap();
        assert_eq!(numbers(&writer).await, 1);
    }

    #[tokio::test]
    async fn a_transaction_that_is_lost_fails_its_batch_and_no_other() {
        let (writer, _directory) = writer();
        let lose = writer.write(|connection| {
            connection.execute_batch("ROLLBACK").unwrap();
            Ok(())
        });
        let batch = async { join!(insert(&writer, 1, None), lose, insert(&writer, 2, None)) };
        let (before, lost, after) = together(&writer, batch).await;
        for result in [before, lost, after] {
            assert!(matches!(result, Err(Error::Failed { .. })), "{result:?}");
        }
        assert_eq!(numbers(&writer).await, 0);
        insert(&writer, 1, None).await.unwrap();
    }

    #[tokio::test]
    async fn a_write_that_panics_or_fails_undoes_only_itself() {
        let (writer, _directory) = writer();
        let panics = writer.write(|connection| -> Result<()> {
            connection.execute_batch("INSERT INTO numbers VALUES (7, NULL)").unwrap();
            panic!("a bug");
        });
        let fails = writer.write(|connection| -> Result<()> {
            connection.execute_batch("INSERT INTO numbers VALUES (8, NULL)").unwrap();
            Err(Error::InvalidCursor)
        });
        let batch = async { join!(insert(&writer, 1, None), panics, fails, insert(&writer, 2, None)) };
        let (one, panicked, failed, two) = together(&writer, batch).await;
        assert!(one.is_ok() && two.is_ok());
        assert!(matches!(panicked, Err(Error::Failed { .. })), "{panicked:?}");
        assert!(matches!(failed, Err(Error::InvalidCursor)), "{failed:?}");
        assert_eq!(numbers(&writer).await, 2);
    }

    #[tokio::test]
    async fn a_write_happens_even_if_nobody_waits_for_it() {
        let (writer, _directory) = writer();
        // Polled once, which queues it, and then dropped.
        tokio::select! { biased;
            _ = insert(&writer, 1, None) => {}
            () = std::future::ready(()) => {}
        }
        assert_eq!(numbers(&writer).await, 1);
    }
}
