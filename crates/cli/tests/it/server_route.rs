//! `GET /v1/server` and what `doctor` says about the same.

use serde_json::Value;

use crate::installation::Installation;

#[test]
fn confinement_is_told_promise_by_promise() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let (status, about) = server.request("GET", "/v1/server", &key, "");
    assert_eq!(status, 200, "{about}");
    assert!(about["version"].is_string(), "{about}");
    let promises = about["sandbox"]["promises"].as_array().unwrap();
    assert!(promises.len() >= 10, "{about}");
    let signal = promises.iter().find(|told| told["promise"] == "commands cannot signal the server").unwrap();
    assert_eq!(signal["kept"], signal["by"].is_string(), "{signal}");
    let other = server.request("POST", "/v1/keys", &key, r#"{"tenant":"globex"}"#).1;
    let (status, refused) = server.request("GET", "/v1/server", other["key"].as_str().unwrap(), "");
    assert_eq!((status, &refused["error"]), (403, &Value::from("forbidden")), "{refused}");
    drop(server);
    let said = installation.run(&["doctor"]).stdout;
    for told in promises {
        assert!(said.contains(told["promise"].as_str().unwrap()), "{said}");
    }
}

/// Runs commands as somebody who is no root, who needs a user namespace for all that.
#[test]
fn commands_of_an_ordinary_user_do_not_see_the_home() {
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        eprintln!("SKIPPED: only root can run the server as somebody else");
        return;
    }
    let installation = Installation::of_user(12345, 12345);
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let about = server.request("GET", "/v1/server", &key, "").1;
    let home = installation.home().display().to_string();
    let attack = format!(
        "stat -c %s {home}/admin.key; chmod 755 {home}; chmod 644 {home}/admin.key; id -u; chmod 700 ."
    );
    let policy = serde_json::json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = serde_json::json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let definition = serde_json::json!({ "name": "Test", "model": "demo/fast", "tools": tools }).to_string();
    let agent = server.request("POST", "/v1/agents", &key, &definition).1;
    let sessions = format!("/v1/agents/{}/sessions", agent["id"].as_str().unwrap());
    let session = server.request("POST", &sessions, &key, "{}").1["id"].as_str().unwrap().to_owned();
    server.say(&key, &session, &format!("run {attack}"));
    crate::kill::until_idle(&server, &key, &session, 1);
    let events = server.request("GET", &format!("/v1/sessions/{session}/events"), &key, "").1.to_string();
    assert!(events.contains("12345\\\\n"), "{events}");
    if about["sandbox"]["level"] == "full" {
        // Once in the result, once in what the model says about it.
        assert_eq!(events.matches("No such file").count(), 4, "{events}");
        let mode = |name: &str| {
            std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(installation.file(name)).unwrap())
        };
        assert_eq!((mode("admin.key") & 0o777, mode("") & 0o777), (0o600, 0o700));
    } else {
        eprintln!("SKIPPED: there are no user namespaces here: {about}");
    }
}
