//! `petasos backup`.

use std::fs;
use std::path::PathBuf;

use crate::installation::{Installation, mode};

/// Another installation whose database is this file.
fn restored(file: &std::path::Path) -> Installation {
    let installation = Installation::new();
    installation.write("petasos.db", fs::read(file).unwrap());
    installation
}

#[test]
fn a_copy_of_a_running_server_has_every_session() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let session = server.create_session(&key, "demo/echo");
    server.say(&key, &session, "Remember me");
    let copy = installation.file("copy.db");
    let made = installation.json(&["backup", copy.to_str().unwrap()]);
    assert_eq!(made["path"], copy.to_str().unwrap());
    assert_eq!(made["bytes"], fs::metadata(&copy).unwrap().len());
    assert_eq!(mode(&copy), 0o600);
    assert_eq!(fs::read_dir(installation.file("backups")).unwrap().count(), 0, "it was moved");

    let later = server.create_session(&key, "demo/echo");
    let other = restored(&copy);
    let shown = other.run(&["sessions", "get", &session]).stdout;
    assert!(shown.contains("user: Remember me"), "{shown}");
    other.run(&["sessions", "get", &later]).assert_refused(&["not_found"]);
    server.stop();
}

#[test]
fn it_works_without_a_server_and_stays_in_the_home() {
    let installation = Installation::new();
    let finished = installation.run(&["backup"]);
    assert!(finished.success, "{finished:?}");
    let path = PathBuf::from(finished.stdout.split("  ").next().unwrap());
    assert_eq!(path.parent().unwrap(), installation.file("backups"));
    assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
    assert!(restored(&path).run(&["agents", "list"]).success);

    // A directory takes as many as there are.
    let nightly = installation.file("nightly");
    fs::create_dir(&nightly).unwrap();
    for _ in 0..2 {
        installation.json(&["backup", nightly.to_str().unwrap()]);
    }
    assert_eq!(fs::read_dir(&nightly).unwrap().count(), 2);
}

#[test]
fn nothing_is_overwritten() {
    let installation = Installation::new();
    let taken = installation.write("taken.db", "mine");
    let refused = installation.run(&["backup", taken.to_str().unwrap()]);
    refused.assert_refused(&["taken.db", "exists already"]);
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let nowhere = installation.file("no/such/copy.db");
    installation.run(&["backup", nowhere.to_str().unwrap()]).assert_refused(&["there is no directory"]);
    assert!(!installation.file("backups").exists(), "and nothing was made for it");
}

#[test]
fn only_administrators_make_backups() {
    let installation = Installation::new();
    let server = installation.serve();
    let made = installation.json(&["keys", "create", "--scope", "sessions:read"]);
    let key = made["key"].as_str().unwrap();
    installation.run(&["backup", "--key", key]).assert_refused(&["admin", "forbidden"]);
    server.stop();
}
