//! What commands of agents cannot read, wherever the server keeps it.

use serde_json::{Value, json};

use crate::installation::Installation;

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
    let output = loop {
        let events = server.request("GET", &format!("/v1/sessions/{session}/events"), key, "").1;
        let events = events["data"].as_array().unwrap().clone();
        let result = events.into_iter().find(|event| event["type"] == "agent.tool_result");
        if let Some(result) = result {
            let text = result["payload"]["content"][0]["text"].as_str().unwrap();
            break serde_json::from_str::<Value>(text).unwrap()["output"].as_str().unwrap().to_owned();
        }
    };
    assert!(elsewhere.path().join("p.db-wal").exists() && elsewhere.path().join("p.lock").exists());
    assert!(output.contains("useful= useful"), "{output}");
    assert_eq!(output.matches("Permission denied").count(), names.len() - 1, "{output}");
}
