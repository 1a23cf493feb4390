//! Commands of agents die with the server, however it dies.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::installation::{Installation, PATIENCE, Server};

/// A process that does what it can to live on: another session, another parent, deaf to signals.
const STUBBORN: &str = "setsid bash -c 'trap \\\"\\\" TERM HUP INT; (trap \\\"\\\" TERM HUP; echo $BASHPID > child; sleep 600) &' & echo $$ > parent; sleep 600";

/// Starts a turn in which that runs, and returns the ids of its processes.
fn start_stubborn(installation: &Installation, server: &Server, key: &str, background: bool) -> [String; 2] {
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
    ["parent", "child"].map(|name| wait_for_file(&installation.file("workspaces"), name))
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => find(&path, name),
        path => Some(path).filter(|path| path.ends_with(name)),
    })
}

fn wait_for_file(directory: &Path, name: &str) -> String {
    let started = Instant::now();
    while started.elapsed() < PATIENCE {
        let content = find(directory, name).and_then(|path| std::fs::read_to_string(path).ok());
        if let Some(content) = content.filter(|content| content.ends_with('\n')) {
            return content.trim().to_owned();
        }
        std::thread::yield_now();
    }
    panic!("no file {name}");
}

fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

/// Nothing may live on for longer than this.
const LONGEST: Duration = Duration::from_secs(5);

fn assert_all_end(pids: &[String]) {
    let died = Instant::now();
    while pids.iter().any(|pid| is_alive(pid)) {
        assert!(died.elapsed() < LONGEST, "{pids:?} live on without their server");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_outlives_a_server_that_is_killed() {
    let installation = Installation::new();
    let mut server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let foreground = start_stubborn(&installation, &server, &key, false);
    std::fs::remove_dir_all(installation.file("workspaces")).unwrap();
    let background = start_stubborn(&installation, &server, &key, true);
    let pids = [foreground, background].concat();
    assert!(pids.iter().all(|pid| is_alive(pid)), "{pids:?}");
    server.signal("KILL");
    server.wait();
    assert_all_end(&pids);
}

#[test]
fn nothing_outlives_a_server_that_is_stopped() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let pids = start_stubborn(&installation, &server, &key, true);
    server.stop();
    assert_all_end(&pids);
}
