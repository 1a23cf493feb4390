//! Writes that share a transaction.
//!
//! Each has a savepoint of its own, so that one that fails undoes nothing but itself. Nobody is told that a write
//! succeeded before the commit returned.

use std::error::Error as StdError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::sqlite::columns::failed;
use crate::sqlite::full_disk::{WriteFailure, write_failure};

/// Why no write of a batch was kept.
type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// A write, whatever it returns.
pub(super) trait Job: Send {
    /// Does the work, and says whether to keep what it did.
    fn run(&mut self, connection: &Connection) -> bool;

    /// What came of the work; none before it was done.
    fn outcome(&self) -> Option<std::result::Result<(), &Error>>;

    /// Tells whoever waits, once it is known whether the batch was kept.
    fn answer(self: Box<Self>, committed: std::result::Result<(), Failure>);

    /// Tells whoever waits that the work was not done.
    fn refuse(self: Box<Self>, error: Error);
}

/// Why no write of a batch was kept.
#[derive(Clone)]
pub(super) struct Failure {
    cause: Cause,
    kind: WriteFailure,
}

/// What a batch says about the writes to come.
pub(super) enum Outcome {
    /// Something was written.
    Written,
    /// Nothing was, for reasons of the writes themselves.
    NothingWritten,
    /// No write can succeed now.
    Problem(String),
}

/// What is told to people while the disk is full.
const FULL: &str = "the disk or the database is full; requests that write are refused until there is room";
/// What is told to people while the disk fails.
const FAILS: &str =
    "the disk of the database fails; the last write was refused, and the server's log says why";

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

    fn outcome(&self) -> Option<std::result::Result<(), &Error>> {
        self.outcome.as_ref().map(|outcome| outcome.as_ref().map(|_| ()))
    }

    fn refuse(self: Box<Self>, error: Error) {
        // Whoever asked may have gone away.
        let _ = self.answer.send(Err(error));
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), Failure>) {
        let result = match (self.outcome, committed) {
            (_, Err(Failure { cause, kind: WriteFailure::Full })) => {
                Err(Error::Full { context: "commit".to_owned(), source: Box::new(cause) })
            }
            (Some(Err(error)), _) => Err(error),
            (_, Err(Failure { cause, .. })) => Err(failed("commit")(Box::new(cause))),
            (Some(outcome), Ok(())) => outcome,
            (None, Ok(())) => Err(Error::Closed),
        };
        // Whoever asked may have gone away.
        let _ = self.answer.send(result);
    }
}

/// Runs a batch and answers all of it. `has_no_room` looks whether the disk is full; `note` is told what the batch says.
pub(super) fn serve(
    connection: &Connection,
    mut batch: Vec<Box<dyn Job>>,
    has_no_room: &dyn Fn() -> bool,
    note: &dyn Fn(Outcome),
) {
    let committed = commit(connection, &mut batch).map_err(|cause| {
        tracing::error!(%cause, writes = batch.len(), "a commit failed; its writes were refused");
        undo(connection);
        Failure { kind: failure_of(&batch, &cause, has_no_room), cause }
    });
    let is_written = committed.is_ok() && batch.iter().any(|job| matches!(job.outcome(), Some(Ok(()))));
    let failure = committed.as_ref().err().map(|failure| failure.kind);
    let is_full = failure == Some(WriteFailure::Full)
        || batch.iter().any(|job| matches!(job.outcome(), Some(Err(Error::Full { .. }))));
    // Noted first, so that who has an answer finds the state that belongs to it.
    note(match (is_full, is_written) {
        (true, _) => Outcome::Problem(FULL.to_owned()),
        (false, true) => Outcome::Written,
        (false, false) if failure == Some(WriteFailure::Disk) => Outcome::Problem(FAILS.to_owned()),
        (false, false) => Outcome::NothingWritten,
    });
    for job in batch {
        job.answer(committed.clone());
    }
}

/// Why a batch failed.
fn failure_of(batch: &[Box<dyn Job>], cause: &Cause, has_no_room: &dyn Fn() -> bool) -> WriteFailure {
    let errors =
        batch.iter().filter_map(|job| job.outcome()?.err().map(|error| error as &(dyn StdError + 'static)));
    let failures = std::iter::once(&**cause as &(dyn StdError + 'static)).chain(errors).map(write_failure);
    let failures: Vec<WriteFailure> = failures.collect();
    let is_disk = failures.contains(&WriteFailure::Disk);
    if failures.contains(&WriteFailure::Full) || (is_disk && has_no_room()) {
        WriteFailure::Full
    } else if is_disk {
        WriteFailure::Disk
    } else {
        WriteFailure::Other
    }
}

/// Refuses a batch because another file is in the database's place.
pub(super) fn refuse(batch: Vec<Box<dyn Job>>, path: &Path) {
    for job in batch {
        job.refuse(Error::Replaced { path: path.to_owned() });
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
