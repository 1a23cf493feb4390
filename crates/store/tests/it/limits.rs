//! What happens when there is no more room.

use futures_util::future::join_all;
use petasos_store::sqlite::{Options, SqliteStore};
use petasos_store::suite::{append, session, tenant, user_message};
use petasos_store::{Error, EventLog, SessionStore};
use tempfile::TempDir;

use crate::{count_events, database, open, write_session};

fn small(directory: &TempDir) -> SqliteStore {
    let options = Options { max_bytes: Some(512 * 1024), ..Options::new(database(directory)) };
    SqliteStore::open(options).unwrap()
}

/// Appends until there is no more room, and returns how many events there are.
async fn fill(store: &SqliteStore, id: &str) -> u64 {
    store.create_session(session(id, 0)).await.unwrap();
    for last in 0..1000 {
        match store.append(append(id, last, vec![user_message(&"x".repeat(10_000))])).await {
            Ok(()) => {}
            Err(Error::Full { .. }) => return last,
            Err(other) => panic!("{other:?}"),
        }
    }
    panic!("there is always more room");
}

#[tokio::test]
async fn a_full_disk_refuses_writes_and_recovers() {
    let directory = TempDir::new().unwrap();
    let store = small(&directory);
    let written = fill(&store, "one").await;
    assert!(written > 10);
    // Nothing of the refused write is there, and reading goes on.
    assert_eq!(count_events(&store, "one").await as u64, written);
    let record = store.session(&tenant("default"), &"one".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(record.view.last_sequence, written);
    // Room that becomes free can be used at once.
    assert!(store.delete_session(&tenant("default"), &"one".parse().unwrap()).await.unwrap());
    assert!(fill(&store, "two").await > 10);
    store.close().await.unwrap();
    let store = open(&database(&directory)).unwrap();
    write_session(&store, "three", 1000).await;
}

#[tokio::test]
async fn a_write_without_room_is_whole_or_absent_for_everyone_in_its_commit() {
    let directory = TempDir::new().unwrap();
    let store = small(&directory);
    let ids: Vec<String> = (0..8).map(|number| format!("s{number}")).collect();
    for id in &ids {
        store.create_session(session(id, 0)).await.unwrap();
    }
    let sizes = [10, 100_000, 10, 900_000, 10, 10, 10, 10];
    let writes = ids.iter().zip(sizes).map(|(id, size)| {
        store.append(append(id, 0, vec![user_message("first"), user_message(&"x".repeat(size))]))
    });
    let results = join_all(writes).await;
    assert!(matches!(results[3], Err(Error::Full { .. })), "{results:?}");
    for (id, result) in ids.iter().zip(&results) {
        let expected = if result.is_ok() { 2 } else { 0 };
        assert_eq!(count_events(&store, id).await, expected, "{id}: {result:?}");
    }
    for (id, result) in ids.iter().zip(&results).filter(|(_, result)| result.is_err()) {
        store.append(append(id, 0, vec![user_message("again")])).await.unwrap_or_else(|error| {
            panic!("{id}: {error:?} after {result:?}");
        });
    }
}

#[tokio::test]
async fn more_writes_than_the_queue_holds_wait_for_their_turn() {
    let directory = TempDir::new().unwrap();
    let store = open(&database(&directory)).unwrap();
    let create = |number: usize| store.create_session(session(&format!("s{number}"), 0));
    let results = join_all((0..3000).map(create)).await;
    assert!(results.iter().all(|result| result.is_ok()));
}
