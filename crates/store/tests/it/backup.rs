//! Copies of a store that is in use.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use petasos_store::sqlite::SqliteStore;
use petasos_store::suite::{append, session, user_message};
use petasos_store::{Backup, Error, EventLog, SessionStore};
use tokio::join;
use tokio::task::JoinSet;

use crate::{count_events, database, fresh, open, raw, write_session};

const SESSIONS: usize = 40;

fn integrity(path: &Path) -> String {
    raw(path).pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap()
}

/// Appends to a session, event by event, until it is told to stop.
async fn keep_writing(store: SqliteStore, id: String, progress: Arc<Progress>) {
    let mut sequence = 0;
    while !progress.done.load(Ordering::Acquire) {
        store.append(append(&id, sequence, vec![user_message(&"text ".repeat(200))])).await.unwrap();
        sequence += 1;
        progress.acknowledged.lock().unwrap().insert(id.clone(), sequence);
    }
}

/// How far those who write are.
#[derive(Default)]
struct Progress {
    acknowledged: Mutex<BTreeMap<String, u64>>,
    done: AtomicBool,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_holds_everything_that_was_acknowledged_before_it_began() {
    let (store, directory) = fresh().await;
    // Enough that a copy takes several steps, between which others write.
    write_session(&store, "large", 20_000).await;
    let ids: Vec<String> = (0..SESSIONS).map(|number| format!("s{number}")).collect();
    let progress = Arc::new(Progress::default());
    let mut writers = JoinSet::new();
    for id in ids {
        store.create_session(session(&id, 0)).await.unwrap();
        writers.spawn(keep_writing(store.clone(), id, Arc::clone(&progress)));
    }
    let read = || progress.acknowledged.lock().unwrap().clone();
    let copy = directory.path().join("backups/copy.db");
    while read().len() < SESSIONS {
        tokio::task::yield_now().await;
    }
    let before = read();
    let bytes = store.backup(copy.clone()).await.unwrap();
    let after = read();
    progress.done.store(true, Ordering::Release);
    writers.join_all().await;
    assert!(after.values().sum::<u64>() > before.values().sum(), "writers went on while it was made");
    assert_eq!(fs::metadata(&copy).unwrap().len(), bytes);
    assert_eq!(integrity(&copy), "ok");

    let restored = open(&copy).unwrap();
    assert_eq!(count_events(&restored, "large").await, 20_000);
    for (id, before) in &before {
        let events = count_events(&restored, id).await as u64;
        assert!(events >= *before, "{id}: {before} events were acknowledged, and {events} are there");
        let tenant = petasos_store::suite::tenant("default");
        let record = restored.session(&tenant, &id.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(record.view.last_sequence, events, "log and list are of one moment");
        restored.append(append(id, events, vec![user_message("more")])).await.unwrap();
    }
}

#[tokio::test]
async fn a_file_that_is_there_is_left_as_it_is() {
    let (store, directory) = fresh().await;
    let taken = directory.path().join("taken.db");
    fs::write(&taken, "mine").unwrap();
    let refused = store.backup(taken.clone()).await;
    assert!(matches!(refused, Err(Error::AlreadyExists { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
}

#[tokio::test]
async fn one_backup_is_made_at_a_time_and_what_a_crash_left_is_removed() {
    let (store, directory) = fresh().await;
    write_session(&store, "one", 5).await;
    let backups = directory.path().join("backups");
    fs::create_dir(&backups).unwrap();
    for name in ["petasos-unfinished.db", "petasos-unfinished.db-journal"] {
        fs::write(backups.join(name), "half of something").unwrap();
    }
    let (first, second) = join!(store.backup(backups.join("1.db")), store.backup(backups.join("2.db")));
    first.unwrap();
    assert!(matches!(second, Err(Error::BackupUnderWay)), "{second:?}");
    store.backup(backups.join("2.db")).await.unwrap();
    let mut names: Vec<_> = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["1.db", "2.db"]);
}

#[tokio::test]
async fn a_backup_that_cannot_be_written_leaves_nothing_and_can_be_tried_again() {
    let (store, directory) = fresh().await;
    let file = directory.path().join("file");
    fs::write(&file, "no directory").unwrap();
    let refused = store.backup(file.join("copy.db")).await;
    assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
    store.backup(directory.path().join("copy.db")).await.unwrap();
    store.close().await.unwrap();
    let closed = store.backup(directory.path().join("late.db")).await;
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
    open(&database(&directory)).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_a_backup() {
    use std::os::unix::fs::PermissionsExt as _;
    let (store, directory) = fresh().await;
    let copy = directory.path().join("backups/copy.db");
    store.backup(copy.clone()).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(copy.parent().unwrap()), mode(&copy)), (0o700, 0o600));
}
