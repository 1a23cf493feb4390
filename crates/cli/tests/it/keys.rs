//! `petasos keys`, and how commands find a server.

use std::process::Stdio;

use serde_json::json;

use crate::installation::Installation;

/// The life of a key, whoever serves.
fn create_list_revoke(installation: &Installation) {
    let made = installation.run(&["keys", "create", "--name", "plain"]);
    assert!(made.success, "{}", made.stderr);
    assert!(made.stdout.trim().starts_with("pk_") && made.stdout.lines().count() == 1, "{}", made.stdout);
    let reader =
        ["keys", "create", "--name", "reader", "--tenant", "acme", "--scope", "agents:read", "--scope"];
    let reader = installation.json(&[&reader[..], &["sessions:read"]].concat());
    assert_eq!(reader["tenant"], "acme");
    assert_eq!(reader["scopes"], json!(["agents:read", "sessions:read"]));

    assert_eq!(installation.json(&["keys", "list"])["data"].as_array().unwrap().len(), 2);
    let acme = installation.json(&["keys", "list", "--tenant", "acme"]);
    assert_eq!(acme["data"][0]["id"], reader["id"]);
    let table = installation.run(&["keys", "list"]).stdout;
    assert!(table.contains("reader") && table.contains("agents:read,sessions:read"), "{table}");
    assert!(!table.contains("pk_"), "{table}");

    // The key opens what it should, until it is revoked.
    let (id, key) = (reader["id"].as_str().unwrap(), reader["key"].as_str().unwrap());
    assert!(installation.run(&["agents", "list", "--key", key]).success);
    installation.run(&["keys", "list", "--key", key]).assert_refused(&["forbidden"]);
    let revoked = installation.json(&["keys", "revoke", id]);
    assert!(revoked["revokedAt"].is_string(), "{revoked}");
    installation.run(&["agents", "list", "--key", key]).assert_refused(&["unauthorized"]);
    installation.run(&["keys", "revoke", "key_unknown"]).assert_refused(&["key_unknown", "not_found"]);
}

#[test]
fn with_a_running_server() {
    let installation = Installation::new();
    let server = installation.serve();
    create_list_revoke(&installation);
    server.stop();
}

#[test]
fn without_a_server() {
    let installation = Installation::new();
    create_list_revoke(&installation);
    // The first start of a server still makes and shows the key that is kept.
    assert!(!installation.file("admin.key").exists());
    let server = installation.serve();
    assert!(server.shown_key().is_some());
    assert_eq!(installation.json(&["keys", "list"])["data"].as_array().unwrap().len(), 2);
}

#[test]
fn commands_without_a_server_take_turns() {
    let installation = Installation::new();
    let start = |_| {
        let mut command = installation.command(&["keys", "create"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(installation.json(&["keys", "list"])["data"].as_array().unwrap().len(), 4);
}

#[test]
fn a_server_can_be_named() {
    let here = Installation::new();
    let server = here.serve();
    let key = server.shown_key().unwrap();
    let elsewhere = Installation::new();
    let named = ["keys", "list", "--server", &server.url];
    elsewhere.run(&named).assert_refused(&["there is no key for the server", "--key", "PETASOS_API_KEY"]);
    assert!(elsewhere.run(&[&named[..], &["--key", key]].concat()).success);
    let elsewhere = elsewhere.with_env("PETASOS_URL", &server.url).with_env("PETASOS_API_KEY", "wrong");
    elsewhere.run(&["keys", "list"]).assert_refused(&["unauthorized"]);
    // Another server's key is nobody else's business.
    let refused = here.run(&["keys", "list", "--server", "http://petasos.invalid:1"]);
    refused.assert_refused(&["there is no key for the server"]);
}

#[test]
fn help_and_version() {
    let installation = Installation::new();
    let version = installation.run(&["--version"]).stdout;
    assert_eq!(version.trim(), concat!("petasos ", env!("CARGO_PKG_VERSION")));
    for arguments in [&["--help"][..], &["serve", "--help"], &["keys", "--help"], &["agents", "--help"]] {
        let help = installation.run(arguments);
        assert!(help.success && help.stdout.contains("Examples:"), "{arguments:?}");
    }
    assert_eq!(installation.run(&["keys", "create", "--scope", "all"]).code, Some(1));
}
