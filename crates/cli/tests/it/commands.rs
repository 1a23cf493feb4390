//! Commands of agents die with the server, however it dies.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::installation::{Installation, PATIENCE, Server};

/// A process that does what it can to live on: another session, another parent, deaf to signals.
const STUBBORN: &str = "setsid bash -c 'trap \\\"\\\" TERM HUP INT; (trap \\\"\\\" TERM HUP; echo $BASHPID > child; sleep 600) &' & echo $$ > parent; sleep 600";

/// Starts a turn in which that runs, and waits until it does.
fn start_stubborn(installation: &Installation, server: &Server, key: &str, background: bool) {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let definition = json!({ "name": "Test", "model": "demo/fast", "tools": tools }).to_string();
    let (status, agent) = server.request("POST", "/v1/agents", key, &definition);
    assert_eq!(status, 201, "{agent}");
    let path = format!("/v1/agents/{}/sessions", agent["id"].as_str().unwrap());
    let session = server.request("POST", &path, key, "{}").1["id"].as_str().unwrap().to_owned();
    let command = STUBBORN.replace("\\\"", "\"");
    let arguments = json!({ "command": command, "background": background });
    let message = serde_json::to_string(&format!("call terminal {arguments}")).unwrap();
    server.say(key, &session, message.trim_matches('"'));
    for name in ["parent", "child"] {
        wait_for_file(&installation.file("workspaces"), name);
    }
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => Some(path).filter(|path| path.ends_with(name)),
    })
}

fn wait_for_file(directory: &Path, name: &str) {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let content = find(directory, name).and_then(|path| std::fs::read_to_string(path).ok());
        if content.is_some_and(|content| content.ends_with('\n')) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("no file {name}");
}

/// How many processes commands of an installation have. They have other numbers inside, so what tells them is their
/// environment, in which the workspace is.
fn running(installation: &Installation) -> usize {
    let home = format!("HOME={}", installation.file("workspaces").display());
    let is_ours = |process: &std::fs::DirEntry| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(home.as_bytes()))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter(is_ours).count()
}

/// Nothing may live on for longer than this.
const LONGEST: Duration = Duration::from_secs(5);

fn assert_all_end(installation: &Installation) {
    let died = Instant::now();
    while running(installation) > 0 {
        assert!(died.elapsed() < LONGEST, "commands live on without their server");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_outlives_a_server_that_is_killed() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    start_stubborn(&installation, &server, &key, false);
    std::fs::remove_dir_all(installation.file("workspaces")).unwrap();
    start_stubborn(&installation, &server, &key, true);
    // Two each, at least.
    assert!(running(&installation) >= 4);
    server.signal("KILL");
    server.wait();
    assert_all_end(&installation);
}

#[test]
fn nothing_outlives_a_server_that_is_stopped() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    start_stubborn(&installation, &server, &key, true);
    server.stop();
    assert_all_end(&installation);
}
