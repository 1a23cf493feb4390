//! What commands of agents cannot read, wherever the server keeps it.

use serde_json::{Value, json};

use crate::installation::{Finished, Installation};
use crate::kill::until_idle;

#[test]
fn commands_do_not_see_the_configuration_and_the_database() {
    let elsewhere = tempfile::tempdir().unwrap();
    let path = |name: &str| elsewhere.path().join(name).display().to_string();
    let config = format!(
        "sandbox: {{ read: ['{}'] }}\nproviders: {{ mine: {{ kind: openai, base_url: 'http://127.0.0.1:1', api_key: s3cret-key }} }}\n",
        elsewhere.path().display()
    );
    std::fs::write(path("config.yaml"), config).unwrap();
    std::fs::write(path("useful"), "useful").unwrap();
    let installation = Installation::new();
    let database = format!("sqlite:{}", path("p.db"));
    let server = installation.serve_with(&[
        "--listen",
        "127.0.0.1:0",
        "--config",
        &path("config.yaml"),
        "--database-url",
        &database,
    ]);
    let key = server.shown_key().unwrap();
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let definition = json!({ "name": "Test", "model": "demo/fast", "tools": tools }).to_string();
    let agent = server.request("POST", "/v1/agents", key, &definition).1;
    let sessions = format!("/v1/agents/{}/sessions", agent["id"].as_str().unwrap());
    let session = server.request("POST", &sessions, key, "{}").1["id"].as_str().unwrap().to_owned();
    let names = ["useful", "config.yaml", "p.db", "p.db-wal", "p.db-shm", "p.lock"];
    let look = names.map(|name| format!("head -c 9 {} && echo = {name}", path(name)));
    server.say(key, &session, &format!("run {}", look.join("; ")));
    until_idle(&server, key, &session, 1);
    let events = server.request("GET", &format!("/v1/sessions/{session}/events"), key, "").1;
    let result = events["data"].as_array().unwrap().iter().find(|event| event["type"] == "agent.tool_result");
    let text = result.expect("the command ran")["payload"]["content"][0]["text"].as_str().unwrap();
    let output = serde_json::from_str::<Value>(text).unwrap()["output"].as_str().unwrap().to_owned();
    assert!(elsewhere.path().join("p.db-wal").exists() && elsewhere.path().join("p.lock").exists());
    assert!(output.contains("useful= useful"), "{output}");
    assert_eq!(output.matches("= ").count(), 1, "{output}");
}

#[test]
fn a_server_whose_own_files_commands_could_write_does_not_start() {
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().display().to_string();
    let database = format!("sqlite:{place}/data/p.db");
    let installation = Installation::new();
    let home = installation.home().display().to_string();
    let (with_database, with_home) = (["--database-url", &database[..]], []);
    for (write, flags, own) in [
        (&place, &with_database[..], format!("{place}/data/p.db")),
        (&home, &with_home[..], format!("{home}/config.yaml")),
    ] {
        installation.write("config.yaml", format!("sandbox: {{ write: ['{write}'] }}\n"));
        std::fs::create_dir_all(elsewhere.path().join("data")).unwrap();
        let serve = installation.run(&[&["serve", "--listen", "127.0.0.1:0"], flags].concat());
        let has = format!("sandbox.write has {write}");
        serve.assert_refused(&[&has, &own, "--database-url", "take it out"]);
        let doctor = installation.run(&[&["doctor"], flags].concat());
        assert!(
            !doctor.success && doctor.stdout.contains(&format!("fail  sandbox.write: {has}")),
            "{doctor:?}"
        );
    }
    // So are the plugins of a project, if they are used.
    let project = elsewhere.path().canonicalize().unwrap();
    installation.write("config.yaml", format!("sandbox: {{ write: ['{}'] }}\n", project.display()));
    let mut serve = installation.command(&["serve", "--listen", "127.0.0.1:0"]);
    let serve = serve.env("PETASOS_ENABLE_PROJECT_PLUGINS", "1").current_dir(&project).output().unwrap();
    Finished::from(serve).assert_refused(&["sandbox.write has", ".petasos/plugins"]);
    // Beside them they may write.
    installation.write("config.yaml", format!("sandbox: {{ write: ['{place}', '{home}/shared'] }}\n"));
    installation.serve().stop();
}
