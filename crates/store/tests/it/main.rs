//! The embedded store against the contract, and what only it promises.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use petasos_store::sqlite::{Options, SqliteStore};
use tempfile::TempDir;

mod contract {
    petasos_store::store_contract!(crate::fresh);
}

async fn fresh() -> (SqliteStore, TempDir) {
    let directory = TempDir::new().unwrap();
    let store = SqliteStore::open(Options::new(directory.path().join("petasos.db"))).unwrap();
    (store, directory)
}
