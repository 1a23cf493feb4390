//! The index of messages in a database file: how it comes to be, and that nothing is left in it.

use std::path::Path;
use std::time::Duration;

use petasos_core::memory::UserScope;
use petasos_store::suite::{append, session, tenant, user_message};
use petasos_store::{EventLog, MessageOrder, MessageQuery, MessageSearch, SessionStore};
use tempfile::TempDir;

use crate::{database, open, raw};

fn anna() -> UserScope {
    UserScope { tenant: tenant("default"), agent_id: "helper".parse().unwrap(), user_id: "anna".into() }
}

fn query(words: &str) -> MessageQuery {
    MessageQuery { words: words.into(), role: None, except: None, order: MessageOrder::Best, limit: 10 }
}

fn count(directory: &TempDir, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    raw(&database(directory)).query_row(&sql, [], |row| row.get(0)).unwrap()
}

async fn write(directory: &TempDir, messages: usize) {
    let store = open(&database(directory)).unwrap();
    let mut record = session("one", 0);
    record.header.user_id = Some("anna".into());
    store.create_session(record).await.unwrap();
    store.append(append("one", 0, vec![user_message("a teapot"); messages])).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_database_of_the_first_release_gets_its_messages_indexed() {
    let directory = TempDir::new().unwrap();
    write(&directory, 3).await;
    let old = directory.path().join("old.db");
    write_as_of_the_first_release(&old, &database(&directory));
    for end in ["", "-wal", "-shm"] {
        let mut path = database(&directory).into_os_string();
        path.push(end);
        drop(std::fs::remove_file(path));
    }
    std::fs::rename(&old, database(&directory)).unwrap();
    let store = open(&database(&directory)).unwrap();
    assert_eq!(store.search_messages(&anna(), query("teapot")).await.unwrap().len(), 3);
    store.close().await.unwrap();
}

/// Copies a database into one that has nothing but what the first release knew.
fn write_as_of_the_first_release(old: &Path, new: &Path) {
    let schema = include_str!("../../src/sqlite/migrations/001_start.sql");
    let database = raw(old);
    database
        .execute_batch(&format!(
            "PRAGMA application_id = {}; PRAGMA user_version = 1; {schema} ATTACH '{}' AS new;",
            0x5065_7461,
            new.display()
        ))
        .unwrap();
    for table in ["agents", "agent_versions", "sessions", "events", "checkpoints", "grants", "keys"] {
        let columns = format!("SELECT group_concat(name) FROM pragma_table_info('{table}', 'main')");
        let columns: String = database.query_row(&columns, [], |row| row.get(0)).unwrap();
        let copy = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM new.{table}");
        database.execute_batch(&copy).unwrap();
    }
    // As any database of ours, whatever it was made with.
    database.execute_batch("DETACH new; PRAGMA journal_mode = WAL;").unwrap();
    database.close().unwrap();
}

#[tokio::test]
async fn messages_that_wait_when_the_store_is_closed_are_found_later() {
    let directory = TempDir::new().unwrap();
    write(&directory, 3).await;
    assert_eq!(count(&directory, "unindexed_messages"), 3);
    let store = open(&database(&directory)).unwrap();
    assert_eq!(store.search_messages(&anna(), query("teapot")).await.unwrap().len(), 3);
    store.close().await.unwrap();
    assert_eq!(count(&directory, "unindexed_messages"), 0);
}

/// Waits until a table has fewer rows than this.
async fn shrinks(directory: &TempDir, table: &str, fewer_than: i64) {
    let wait = async {
        while count(directory, table) >= fewer_than {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect(table);
}

#[tokio::test]
async fn many_messages_are_indexed_without_being_asked_for() {
    let directory = TempDir::new().unwrap();
    write(&directory, 1000).await;
    let store = open(&database(&directory)).unwrap();
    shrinks(&directory, "unindexed_messages", 512).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn nothing_of_a_deleted_session_stays_in_the_index() {
    let directory = TempDir::new().unwrap();
    write(&directory, 600).await;
    let store = open(&database(&directory)).unwrap();
    assert!(!store.search_messages(&anna(), query("teapot")).await.unwrap().is_empty());
    assert!(store.delete_session(&tenant("default"), &"one".parse().unwrap()).await.unwrap());
    for table in ["events", "unindexed_messages", "message_index_docsize"] {
        shrinks(&directory, table, 1).await;
    }
    store.close().await.unwrap();
}
