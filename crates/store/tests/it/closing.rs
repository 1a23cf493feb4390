//! The end of a store.

use futures_util::future::join;
use petasos_store::suite::{session, tenant};
use petasos_store::{Error, SessionStore};
use tempfile::TempDir;

use crate::{count_events, database, fresh, open, write_session};

#[tokio::test]
async fn a_closed_store_says_so() {
    let (store, _directory) = fresh().await;
    let clone = store.clone();
    write_session(&store, "one", 1).await;
    count_events(&store, "one").await;
    store.close().await.unwrap();
    clone.close().await.unwrap();
    let written = clone.create_session(session("two", 0)).await;
    assert!(matches!(written, Err(Error::Closed)), "{written:?}");
    let read = clone.session(&tenant("default"), &"one".parse().unwrap()).await;
    assert!(matches!(read, Err(Error::Closed)), "{read:?}");
}

#[tokio::test]
async fn closing_finishes_what_is_queued() {
    let (store, directory) = fresh().await;
    let writes = futures_util::future::join_all(
        (0..50).map(|number| store.create_session(session(&format!("s{number}"), 0))),
    );
    let (results, closed) = join(writes, store.close()).await;
    closed.unwrap();
    assert!(results.iter().all(|result| result.is_ok()), "{results:?}");
    let store = open(&database(&directory)).unwrap();
    assert!(store.session(&tenant("default"), &"s49".parse().unwrap()).await.unwrap().is_some());
}

#[test]
fn a_store_may_outlive_its_runtime_and_be_dropped_anywhere() {
    let directory = TempDir::new().unwrap();
    let path = database(&directory);
    let store = open(&path).unwrap();
    let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime().block_on(write_session(&store, "one", 2));
    let again = runtime();
    again.block_on(async {
        assert_eq!(count_events(&store, "one").await, 2);
        drop(store);
    });
}
