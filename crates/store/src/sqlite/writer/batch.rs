//! Writes that share a transaction.
//!
//! Each has a savepoint of its own, so that one that fails undoes nothing but itself. Nobody is told that a write
//! succeeded before the commit returned.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::sqlite::columns::failed;

/// Why no write of a batch was kept.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// A write, whatever it returns.
pub(super) trait Job: Send {
    /// Does the work, and says whether to keep what it did.
    fn run(&mut self, connection: &Connection) -> bool;

    /// Tells whoever waits, once it is known whether the batch was kept.
    fn answer(self: Box<Self>, committed: std::result::Result<(), Cause>);
}

/// A write of `work`, and where its result will be.
pub(super) fn write<T, F>(work: F) -> (Box<dyn Job>, oneshot::Receiver<Result<T>>)
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> Result<T> + Send + 'static,
{
    let (answer, answered) = oneshot::channel();
    (Box::new(Write { work: Some(work), outcome: None, answer }), answered)
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

/// Runs a batch and answers all of it.
pub(super) fn serve(connection: &Connection, mut batch: Vec<Box<dyn Job>>) {
    let committed = commit(connection, &mut batch);
    if let Err(cause) = &committed {
        tracing::error!(%cause, writes = batch.len(), "a commit failed; its writes were refused");
        undo(connection);
    }
    for job in batch {
        job.answer(committed.clone());
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
