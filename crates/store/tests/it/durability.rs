//! What was acknowledged is there after a restart, however the process ended.

use std::fs;
use std::path::{Path, PathBuf};

use petasos_store::suite::{append, session, tenant, user_message};
use petasos_store::{EventLog, SessionStore};
use tempfile::TempDir;

use crate::{count_events, database, fresh, open, raw, used, write_session};

/// What the disk would hold if the process died now.
fn copy_as_after_a_crash(path: &Path, to: &TempDir) -> PathBuf {
    let copy = database(to);
    for suffix in ["", "-wal"] {
        let name = |path: &Path| format!("{}{suffix}", path.display());
        fs::copy(name(path), name(&copy)).unwrap();
    }
    copy
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let path = used(&directory).await;
    assert!(!directory.path().join("petasos.db-wal").exists(), "closing leaves one file");
    let store = open(&path).unwrap();
    assert_eq!(count_events(&store, "one").await, 3);
    let record = store.session(&tenant("default"), &"one".parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(record.view.last_sequence, 3);
    store.append(append("one", 3, vec![user_message("more")])).await.unwrap();
}

#[tokio::test]
async fn everything_acknowledged_is_there_after_a_crash() {
    let (store, directory) = fresh().await;
    write_session(&store, "one", 5).await;
    let crashed = TempDir::new().unwrap();
    let copy = copy_as_after_a_crash(&database(&directory), &crashed);
    write_session(&store, "two", 5).await;
    let after = open(&copy).unwrap();
    assert_eq!(count_events(&after, "one").await, 5);
    assert_eq!(count_events(&after, "two").await, 0);
    write_session(&after, "two", 2).await;
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_checkpoint_is_no_damage() {
    let directory = TempDir::new().unwrap();
    let path = used(&directory).await;
    let store = open(&path).unwrap();
    write_session(&store, "two", 400).await;
    let crashed = TempDir::new().unwrap();
    let copy = copy_as_after_a_crash(&path, &crashed);
    store.close().await.unwrap();
    // A checkpoint writes the first page first: it says how long the file will be when the rest is there.
    let (finished, mut begun) = (fs::read(&path).unwrap(), fs::read(&copy).unwrap());
    assert!(finished.len() > begun.len());
    begun[..4096].copy_from_slice(&finished[..4096]);
    fs::write(&copy, begun).unwrap();
    let store = open(&copy).unwrap();
    assert_eq!(count_events(&store, "two").await, 400);
}

#[tokio::test]
async fn a_crash_while_the_database_is_made_leaves_nothing_in_the_way() {
    let directory = TempDir::new().unwrap();
    for name in ["petasos.db.new", "petasos.db.new-wal"] {
        fs::write(directory.path().join(name), b"half of something").unwrap();
    }
    let store = open(&database(&directory)).unwrap();
    write_session(&store, "one", 1).await;
    assert!(!directory.path().join("petasos.db.new").exists());
    assert!(!directory.path().join("petasos.db.new-wal").exists());
}

#[tokio::test]
async fn the_log_of_a_removed_session_is_swept_away_across_restarts() {
    let directory = TempDir::new().unwrap();
    let path = database(&directory);
    let store = open(&path).unwrap();
    write_session(&store, "big", 3000).await;
    write_session(&store, "kept", 7).await;
    assert!(store.delete_session(&tenant("default"), &"big".parse().unwrap()).await.unwrap());
    store.close().await.unwrap();
    let left =
        || raw(&path).query_row("SELECT count(*) FROM events", [], |row| row.get::<_, i64>(0)).unwrap();
    // Each write is followed by at least one step of sweeping.
    for round in 0..7 {
        let store = open(&path).unwrap();
        store.create_session(session(&format!("s{round}"), 0)).await.unwrap();
        store.close().await.unwrap();
    }
    assert_eq!(left(), 7);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = TempDir::new().unwrap();
    let home = directory.path().join("a/home");
    let store = open(&home.join("petasos.db")).unwrap();
    write_session(&store, "one", 1).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    for name in ["petasos.db", "petasos.db-wal", "petasos.db-shm", "petasos.lock"] {
        assert_eq!(mode(&home.join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn the_database_is_set_up_for_durability() {
    let (store, directory) = fresh().await;
    write_session(&store, "one", 1).await;
    let database = raw(&database(&directory));
    let pragma = |name: &str| {
        database.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0)).unwrap()
    };
    assert_eq!(pragma("journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma("application_id"), i64::from(0x5065_7461).into());
    assert_ne!(pragma("user_version"), 0.into());
    assert_eq!(pragma("integrity_check"), "ok".to_owned().into());
}
