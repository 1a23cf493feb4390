//! The index of messages in a database file: how it comes to be, and that nothing is left in it.

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
    let old = raw(&database(&directory));
    old.execute_batch(
        "DROP TABLE message_index; DROP TABLE unindexed_messages; DROP TABLE skill_files; DROP TABLE skills;
        DROP TABLE memories; DROP TABLE scopes; DROP TABLE agent_usage; ALTER TABLE sessions DROP COLUMN view_checksum;
        ALTER TABLE sessions DROP COLUMN header_checksum; PRAGMA user_version = 1",
    )
    .unwrap();
    for table in ["agents", "agent_versions", "events", "checkpoints", "grants", "keys"] {
        old.execute_batch(&format!("ALTER TABLE {table} DROP COLUMN checksum")).unwrap();
    }
    old.close().unwrap();
    let store = open(&database(&directory)).unwrap();
    assert_eq!(store.search_messages(&anna(), query("teapot")).await.unwrap().len(), 3);
    store.close().await.unwrap();
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
