//! Starts that are refused: in plain words, with the cure, and with nothing changed.

use std::net::TcpListener;

use crate::installation::Installation;

#[test]
fn a_second_server_in_the_same_home() {
    let installation = Installation::new();
    let server = installation.serve();
    let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
    refused.assert_refused(&["in use by another petasos", "--data-dir"]);
    // The one that runs is still found.
    assert!(installation.run(&["agents", "list"]).success);
    server.stop();
}

#[test]
fn an_address_in_use_costs_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let installation = Installation::new();
    let refused = installation.run(&["serve", "--listen", &address]);
    refused.assert_refused(&[&address, "another program listens there", "--listen"]);
    assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    // The key is shown at the start that works.
    assert!(installation.serve().shown_key().is_some());
}

#[test]
fn an_address_that_is_none() {
    let installation = Installation::new();
    installation.run(&["serve", "--listen", "127.0.0.1"]).assert_refused(&["127.0.0.1", "HOST:PORT"]);
}

#[test]
fn a_wrong_configuration_is_named_with_file_line_and_key() {
    let installation = Installation::new();
    let file = installation.write("config.yaml", "log:\n  level: info\nlisten_on: 127.0.0.1:0\n");
    let place = format!("{}:3:", file.display());
    installation.run(&["serve"]).assert_refused(&[&place, "listen_on", "did you mean listen?"]);
    installation.run(&["keys", "list"]).assert_refused(&[&place, "listen_on"]);
    assert!(!installation.file("petasos.db").exists());

    installation.write("config.yaml", "providers: { x: {} }\n");
    installation.run(&["serve"]).assert_refused(&["providers.x", "kind is missing"]);
    installation.write("config.yaml", "log: { level: petasos=loud }\n");
    installation.run(&["serve"]).assert_refused(&["petasos=loud", "info, debug"]);
    for (config, words) in [
        ("listen: 127.0.0.1", ["listen: \"127.0.0.1\"", "HOST:PORT"]),
        ("listen: nohost:99999", ["listen: \"nohost:99999\"", "up to 65535"]),
        ("default_model: nope", ["default_model: \"nope\"", "provider/model"]),
        ("traces: { endpoint: not a url }", ["traces.endpoint: \"not a url\"", "http://"]),
        ("log: { level: petasos=debgu }", ["log.level cannot be used", "debug"]),
        ("log: { level: loud }", ["log.level cannot be used", "\"loud\" is no level"]),
    ] {
        installation.write("config.yaml", format!("{config}\n"));
        installation.run(&["serve", "--listen", "127.0.0.1:0"]).assert_refused(&words);
        let doctor = installation.run(&["doctor"]);
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        assert!(doctor.stdout.contains(&format!("fail  config: {}", words[0])), "{doctor:?}");
    }
    installation.write("config.yaml", "default_model: nobody/x\n");
    let doctor = installation.run(&["doctor"]).stdout;
    assert!(doctor.contains("warn  default_model: nobody/x: there is no provider"), "{doctor}");
    installation.write("config.yaml", "");
    let loud = Installation::new().with_env("PETASOS_LOG", "loud");
    loud.run(&["serve"]).assert_refused(&["PETASOS_LOG cannot be used", "\"loud\" is no level"]);
    let missing = installation.file("no.yaml");
    let refused = installation.run(&["serve", "--config", missing.to_str().unwrap()]);
    refused.assert_refused(&["cannot read the configuration", "no.yaml"]);
}

#[test]
fn databases_that_do_not_exist_yet() {
    let installation = Installation::new();
    let refused = installation.run(&["serve", "--database-url", "postgres://user:secret@host/db"]);
    refused.assert_refused(&["postgres", "Only the embedded store exists in this release", "sqlite:PATH"]);
    assert!(!refused.stderr.contains("secret"));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this makes a database that the store must refuse")]
fn a_newer_database() {
    let installation = Installation::new();
    assert!(installation.run(&["keys", "list"]).success);
    let database = rusqlite::Connection::open(installation.file("petasos.db")).unwrap();
    database.pragma_update(None, "user_version", 9999).unwrap();
    database.close().unwrap();
    let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
    refused.assert_refused(&["petasos.db", "9999", "newer petasos"]);
    installation.run(&["keys", "list"]).assert_refused(&["9999"]);
}

#[test]
fn a_file_that_is_no_database() {
    let installation = Installation::new();
    let file = installation.write("petasos.db", "x".repeat(4096));
    installation.run(&["serve", "--listen", "127.0.0.1:0"]).assert_refused(&["not an SQLite database"]);
    assert_eq!(std::fs::read(file).unwrap(), "x".repeat(4096).into_bytes());
}

#[test]
fn an_admin_key_that_is_none() {
    let installation = Installation::new();
    for text in ["", "\n", "two words"] {
        installation.write("admin.key", text);
        let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
        refused.assert_refused(&["admin.key", "cannot be used"]);
        assert_eq!(std::fs::read_to_string(installation.file("admin.key")).unwrap(), text);
    }
}

#[test]
fn what_cannot_be_the_address_of_a_server_is_said_to_be_none() {
    let installation = Installation::new();
    for address in ["http://", "ftp://127.0.0.1", "https:///x", ":7380"] {
        let refused = installation.run(&["sessions", "list", "--server", address, "--key", "x"]);
        refused.assert_refused(&["is no address of a server", "http://127.0.0.1:7380"]);
    }
}

#[test]
fn errors_do_not_reach_the_terminal_as_commands() {
    let refused = Installation::new().run(&["sessions", "get", "\u{1b}[31mx"]);
    refused.assert_refused(&["[31mx"]);
    assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");
}

#[test]
fn a_backup_to_a_directory_that_is_not_there_is_not_made() {
    let installation = Installation::new();
    let nowhere = format!("{}/", installation.file("nowhere").display());
    installation.run(&["backup", &nowhere]).assert_refused(&["there is no directory"]);
    assert!(!installation.file("backups").exists());
}

#[test]
fn a_message_that_no_server_takes_is_refused_in_words_of_its_own() {
    let message = "a".repeat(2_000_001);
    let refused = Installation::new().run_with_input(&["run", "--model", "demo/fast"], &message);
    refused.assert_refused(&["2000001 characters", "at most 2000000"]);
    // That is no reason to leave a chat.
    let lines = format!("{message}\nhello\n");
    let chat = Installation::new().run_with_input(&["chat", "--model", "demo/fast"], &lines);
    assert!(chat.success && chat.stdout.contains("You said: hello"), "{chat:?}");
    assert!(chat.stderr.contains("at most 2000000"), "{}", chat.stderr);
}
