//! Files that must not be used are refused with the reason, and stay exactly as they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use petasos_store::Error;
use tempfile::TempDir;

use crate::{database, open, raw, used, write_session};

/// Every file of a directory except the lock, which is ours to make.
fn files(directory: &TempDir) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_name() != "petasos.lock")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

/// Opens the database in `directory`, which must fail and change nothing. Twice, as people do.
#[track_caller]
fn refused(directory: &TempDir) -> Error {
    let before = files(directory);
    open(&database(directory)).expect_err("the file must be refused");
    let error = open(&database(directory)).expect_err("the file must be refused again");
    let after = files(directory);
    assert!(before.keys().eq(after.keys()), "{:?} became {:?}", before.keys(), after.keys());
    assert!(before == after, "a file was changed");
    error
}

#[track_caller]
fn corrupt(directory: &TempDir, expected: &str) {
    match refused(directory) {
        Error::Corrupt { path, problem } => {
            assert_eq!(path, database(directory));
            assert!(problem.contains(expected), "{problem}");
        }
        other => panic!("{other:?}"),
    }
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn files_that_are_no_database() {
    let header_only = [b"SQLite format 3\0".as_slice(), &[0; 20]].concat();
    for content in [b"x".as_slice(), &[b'x'; 10_000], &[0; 4096], &header_only] {
        let directory = TempDir::new().unwrap();
        fs::write(database(&directory), content).unwrap();
        corrupt(&directory, "not an SQLite database");
    }
}

#[test]
fn databases_of_other_applications() {
    for application_id in [0, 1] {
        let directory = TempDir::new().unwrap();
        let other = raw(&database(&directory));
        other.pragma_update(None, "application_id", application_id).unwrap();
        other.execute_batch("CREATE TABLE sessions (id TEXT); PRAGMA user_version = 1").unwrap();
        other.close().unwrap();
        corrupt(&directory, "another application");
    }
}

#[tokio::test]
async fn a_file_that_was_cut() {
    for cut in [1, 4096, 4096 * 3 + 17, usize::MAX] {
        let directory = TempDir::new().unwrap();
        let path = used(&directory).await;
        edit(&path, |bytes| bytes.truncate(bytes.len().saturating_sub(cut)));
        corrupt(&directory, "it was cut");
    }
}

#[tokio::test]
async fn a_file_that_was_cut_while_its_log_holds_other_pages() {
    let directory = TempDir::new().unwrap();
    let path = used(&directory).await;
    let crashed = TempDir::new().unwrap();
    let store = open(&path).unwrap();
    write_session(&store, "two", 1).await;
    for name in ["petasos.db", "petasos.db-wal"] {
        fs::copy(directory.path().join(name), crashed.path().join(name)).unwrap();
    }
    edit(&database(&crashed), |bytes| bytes.truncate(2 * 4096));
    corrupt(&crashed, "it was cut");
}

#[tokio::test]
async fn a_log_without_its_database() {
    let directory = TempDir::new().unwrap();
    let crashed = TempDir::new().unwrap();
    let store = open(&database(&directory)).unwrap();
    write_session(&store, "one", 1).await;
    let wal = "petasos.db-wal";
    fs::copy(directory.path().join(wal), crashed.path().join(wal)).unwrap();
    corrupt(&crashed, "write-ahead log");
}

#[tokio::test]
async fn a_damaged_first_page() {
    for damaged in [16..18, 100..108, 100..400, 108..2000, 3000..4096] {
        let directory = TempDir::new().unwrap();
        let path = used(&directory).await;
        edit(&path, |bytes| bytes[damaged].fill(0xff));
        corrupt(&directory, "");
    }
}

#[tokio::test]
async fn a_damaged_schema() {
    let damages = [
        ("DROP TABLE events", "the table events is missing"),
        ("DROP INDEX sessions_running", "the index sessions_running is missing"),
        ("ALTER TABLE keys DROP COLUMN name", "the table keys is missing or was changed"),
        ("PRAGMA user_version = 0", "no version"),
    ];
    for (damage, expected) in damages {
        let directory = TempDir::new().unwrap();
        let path = used(&directory).await;
        raw(&path).execute_batch(damage).unwrap();
        corrupt(&directory, expected);
    }
}

#[tokio::test]
async fn a_database_of_a_newer_release() {
    let directory = TempDir::new().unwrap();
    let path = used(&directory).await;
    raw(&path).execute_batch("PRAGMA user_version = 999; CREATE TABLE things (id TEXT)").unwrap();
    let error = refused(&directory);
    assert!(matches!(&error, Error::Newer { found: 999, path: named, .. } if *named == path), "{error:?}");
    assert!(error.to_string().contains("999"));
}

#[tokio::test]
async fn a_newer_release_that_crashed_after_migrating() {
    let directory = TempDir::new().unwrap();
    let path = used(&directory).await;
    let newer = raw(&path);
    newer.execute_batch("PRAGMA user_version = 999").unwrap();
    let crashed = TempDir::new().unwrap();
    for name in ["petasos.db", "petasos.db-wal", "petasos.db-shm"] {
        fs::copy(directory.path().join(name), crashed.path().join(name)).unwrap();
    }
    let kept = ["petasos.db", "petasos.db-wal"].map(|name| fs::read(crashed.path().join(name)).unwrap());
    let error = open(&database(&crashed)).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 999, .. }), "{error:?}");
    let after = ["petasos.db", "petasos.db-wal"].map(|name| fs::read(crashed.path().join(name)).unwrap());
    assert!(kept == after, "a file was changed");
}

#[tokio::test]
async fn a_database_that_is_open() {
    let directory = TempDir::new().unwrap();
    let path = database(&directory);
    let store = open(&path).unwrap();
    write_session(&store, "one", 1).await;
    // Its files may change meanwhile: the one that has it open writes whenever it likes.
    let error = open(&path).unwrap_err();
    assert!(
        matches!(&error, Error::InUse { path } if *path == directory.path().join("petasos.lock")),
        "{error:?}"
    );
    write_session(&store, "two", 1).await;
    store.close().await.unwrap();
    open(&path).unwrap();
}

#[test]
fn a_path_that_cannot_be_a_database() {
    let directory = TempDir::new().unwrap();
    fs::create_dir(database(&directory)).unwrap();
    let error = open(&database(&directory)).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error:?}");
    fs::write(directory.path().join("file"), "x").unwrap();
    let error = open(&directory.path().join("file/petasos.db")).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }), "{error:?}");
}
