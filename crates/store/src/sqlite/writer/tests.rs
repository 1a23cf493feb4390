//! Writes that come alone or together, fail, panic, lose their transaction, or are not waited for.

use tokio::join;
use tokio::sync::oneshot;

use super::*;

/// A writer for a database with a table of numbers, whose `parent` is only checked at the commit.
fn writer() -> (Writer, tempfile::TempDir) {
    writer_with(|_| Ok(false))
}

fn writer_with(chore: Chore) -> (Writer, tempfile::TempDir) {
    let directory = tempfile::TempDir::new().unwrap();
    let connection = Connection::open_in_memory().unwrap();
    let tables = "PRAGMA foreign_keys = ON; CREATE TABLE numbers (number INTEGER PRIMARY KEY,
        parent INTEGER REFERENCES numbers (number) DEFERRABLE INITIALLY DEFERRED)";
    connection.execute_batch(tables).unwrap();
    let lock = Lock::take(&directory.path().join("petasos.db")).unwrap();
    (Writer::start(connection, lock, chore).unwrap(), directory)
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
    let count =
        writer.write(|connection| connection.query_row(sql, [], |row| row.get(0)).map_err(failed("count")));
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

#[tokio::test]
async fn a_chore_that_panics_undoes_itself_and_leaves_the_writer_alone() {
    let (writer, _directory) = writer_with(|connection| {
        connection.execute_batch("INSERT INTO numbers VALUES (7, NULL)").unwrap();
        panic!("a bug");
    });
    for number in 1..=3 {
        insert(&writer, number, None).await.unwrap();
    }
    assert_eq!(numbers(&writer).await, 3);
}
