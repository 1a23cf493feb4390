//! The embedded store against the contract, and what only it promises.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod backup;
mod closing;
mod damage;
mod durability;
mod limits;
mod refusal;
mod search;

use std::path::{Path, PathBuf};

use petasos_store::sqlite::{Options, SqliteStore};
use petasos_store::suite::{append, session, user_message};
use petasos_store::{EventLog, EventQuery, Order, Result, SessionStore};
use tempfile::TempDir;

mod contract {
    petasos_store::store_contract!(crate::fresh);
}

async fn fresh() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().unwrap();
    let store = open(&database(&directory)).unwrap();
    (store, directory)
}

fn database(directory: &TempDir) -> PathBuf {
    directory.path().join("petasos.db")
}

fn open(path: &Path) -> Result<SqliteStore> {
    SqliteStore::open(Options::new(path))
}

/// A database that was used and closed.
async fn used(directory: &TempDir) -> PathBuf {
    let path = database(directory);
    let store = open(&path).unwrap();
    write_session(&store, "one", 3).await;
    store.close().await.unwrap();
    path
}

/// Creates a session with this many events.
async fn write_session(store: &SqliteStore, id: &str, events: usize) {
    store.create_session(session(id, 0)).await.unwrap();
    store.append(append(id, 0, vec![user_message(&"text ".repeat(100)); events])).await.unwrap();
}

async fn count_events(store: &SqliteStore, id: &str) -> usize {
    let query = EventQuery {
        after: None,
        before: None,
        types: vec![],
        order: Order::Ascending,
        limit: 1_000_000,
        max_bytes: usize::MAX,
    };
    store.events(&id.parse().unwrap(), query).await.unwrap().events.len()
}

/// Opens a database behind the store's back.
#[allow(clippy::disallowed_methods, reason = "these tests play another program that opens the file")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
