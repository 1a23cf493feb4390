//! `sudo` in commands of `terminal`, over HTTP.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use petasos_sandbox::Settings;
use petasos_testkit::{Client, Frame, Reply, Setup, TestServer, tools};
use petasos_tools::Toolbox;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Takes the password `right` and runs what it is given.
const SUDO: &str = r#"#!/bin/bash
while getopts kAnvp: option; do declare "o_$option=1"; done
shift $((OPTIND - 1))
[ -z "$o_n" ] && [ "$("$SUDO_ASKPASS" prompt)" = "right word" ] || { echo "sudo: incorrect password" >&2; exit 1; }
[ -n "$o_v" ] && exit 0
exec "$@"
"#;

/// A setup whose commands may call sudo, and the directory that sudo is in.
fn with_sudo() -> (Setup, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("sudo");
    std::fs::write(&program, SUDO).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let workspaces = Arc::new(tempfile::tempdir().unwrap());
    let settings = Settings { sudo: Some(program), ..Settings::default() };
    let options = tools::builtin_options(workspaces.path().to_owned(), settings);
    (Setup { tools: Toolbox::builtin(options), workspaces, ..Setup::default() }, directory)
}

/// An agent whose commands ask nobody, and a session with it.
async fn session(client: &Client) -> String {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = client.agent(json!({ "name": "Ops", "model": "openai/scripted", "tools": tools })).await;
    client.session(&agent).await
}

/// What comes of a command until the session is idle.
async fn call(server: &TestServer, client: &Client, session: &str, command: &str) -> Vec<Frame> {
    let reply = Reply::tool_call("terminal", json!({ "command": command }));
    server.model.script([reply, Reply::text("Done.")]);
    let mut stream = client.stream(session, "").await;
    client.message(session, "go").await.expect(200);
    stream.until_idle().await
}

fn payload<'a>(frames: &'a [Frame], event: &str) -> Option<&'a Value> {
    frames.iter().find(|frame| frame.event == event).map(|frame| &frame.data["payload"])
}

/// Checks that nobody was asked, and returns what the model was told.
fn refused(frames: &[Frame]) -> String {
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    assert!(payload(frames, "agent.sudo_request").is_none());
    let result = payload(frames, "agent.tool_result").unwrap();
    assert_eq!(result["is_error"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn sudo_is_off_by_default_and_nobody_is_asked() {
    let server = TestServer::start().await;
    let session = session(&server.client).await;
    for command in ["sudo true", "true; /usr/bin/sudo -u root id", "bash -c 'sudo true'"] {
        let told = refused(&call(&server, &server.client, &session, command).await);
        assert!(told.contains("sandbox.sudo"), "{told}");
    }
}

#[tokio::test]
async fn other_tenants_are_refused_where_sudo_is_on() {
    let (setup, _directory) = with_sudo();
    let server = TestServer::start_with(setup).await;
    let key = server.client.post("/v1/keys", json!({ "tenant": "globex" })).await.expect(201);
    let globex = server.client_with(key["key"].as_str().unwrap());
    let session = session(&globex).await;
    let told = refused(&call(&server, &globex, &session, "sudo true").await);
    assert!(told.contains("tenant default"), "{told}");
}

#[tokio::test]
async fn a_wrong_password_runs_nothing_and_a_right_one_only_sudo_outside() {
    let (setup, directory) = with_sudo();
    let outside = directory.path().join("outside");
    std::fs::write(&outside, "out of reach").unwrap();
    let server = TestServer::start_with(setup).await;
    let session = session(&server.client).await;
    let command = format!("echo x >> ran; sudo cat {0}; cat {0} ran", outside.display());
    for (password, is_error) in [("made up word", true), ("right word", false)] {
        let asked = call(&server, &server.client, &session, &command).await;
        let request = payload(&asked, "agent.sudo_request").unwrap();
        assert_eq!(request["command"], command.as_str());
        let answer =
            json!({ "type": "user.sudo_result", "request_id": request["request_id"], "password": password });
        let mut stream = server.client.stream(&session, "").await;
        server.client.event(&session, answer).await.expect(200);
        let frames = stream.until_idle().await;
        let result = payload(&frames, "agent.tool_result").unwrap();
        let told = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(result["is_error"].as_bool().unwrap_or_default(), is_error, "{told}");
        assert!(!told.contains(password), "{told}");
        if is_error {
            assert!(told.contains("Nothing of the command was run") && told.contains("password"), "{told}");
        } else {
            // Once, by sudo; and only this command wrote the file.
            assert_eq!(told.matches("out of reach").count(), 1, "{told}");
            assert_eq!(told.matches("x\\n").count(), 1, "{told}");
        }
    }
}
