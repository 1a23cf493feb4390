//! `petasos agents`.

use std::io::Write;
use std::process::Stdio;

use crate::installation::Installation;

const AGENT: &str = "\
# A comment, to be sure that this is YAML.
name: Helper
model: demo/echo
instructions: |
  Be kind.
tools:
  - type: agent_toolset
    defaultConfig: { permissionPolicy: { type: always_ask } }
metadata: { area: media }
";

#[test]
fn from_yaml_to_archive() {
    let installation = Installation::new();
    let file = installation.write("agent.yaml", AGENT);
    let agent = installation.json(&["agents", "create", file.to_str().unwrap()]);
    assert_eq!((&agent["name"], &agent["version"]), (&"Helper".into(), &1.into()));
    assert_eq!(agent["tools"][0]["defaultConfig"]["permissionPolicy"]["type"], "always_ask");
    let id = agent["id"].as_str().unwrap();

    let change = installation.write("change.yaml", "name: Better\n");
    let changed = installation.json(&["agents", "update", id, change.to_str().unwrap()]);
    assert_eq!((&changed["name"], &changed["version"]), (&"Better".into(), &2.into()));
    assert_eq!(changed["instructions"], "Be kind.\n");

    assert_eq!(installation.json(&["agents", "get", id])["version"], 2);
    assert_eq!(installation.json(&["agents", "get", id, "--version", "1"])["name"], "Helper");
    assert_eq!(installation.json(&["agents", "versions", id])["data"].as_array().unwrap().len(), 2);
    assert!(installation.json(&["agents", "archive", id])["archivedAt"].is_string());
    let text = installation.run(&["agents", "get", id]).stdout;
    assert!(
        text.contains("Better") && text.contains("archived") && text.contains("1 (see --json)"),
        "{text}"
    );
}

#[test]
fn from_json_on_standard_input() {
    let installation = Installation::new();
    let mut command = installation.command(&["agents", "create", "-", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"name":"Echo","model":"demo/echo"}"#).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let list = installation.run(&["agents", "list"]).stdout;
    assert!(list.contains("Echo") && list.contains("demo/echo"), "{list}");
}

#[test]
fn long_lists_are_read_page_by_page() {
    let installation = Installation::new();
    let server = installation.serve();
    let key = server.shown_key().unwrap();
    // The default agent is there already.
    for _ in 0..104 {
        server.request("POST", "/v1/agents", key, r#"{"name":"A","model":"demo/echo"}"#);
    }
    let count = |limit| {
        let list = installation.json(&["agents", "list", "--limit", limit]);
        (list["data"].as_array().unwrap().len(), list["nextCursor"].is_null())
    };
    assert_eq!(count("1000"), (105, true));
    assert_eq!(count("103"), (103, false));
    let cut = installation.run(&["agents", "list", "--limit", "2"]);
    assert!(cut.stdout.lines().count() == 3 && cut.stderr.contains("--limit"), "{cut:?}");
}

#[test]
fn conversations_have_an_agent_from_the_first_start_on() {
    let installation = Installation::new();
    installation.write("config.yaml", "default_model: demo/fast\n");
    let server = installation.serve();
    let (status, session) =
        server.request("POST", "/conversation/sessions", server.shown_key().unwrap(), "{}");
    assert_eq!(status, 201, "{session}");
    server.stop();
    let agent = installation.json(&["agents", "get", "interactiveAgent"]);
    assert_eq!((&agent["model"], &agent["version"]), (&"demo/fast".into(), &1.into()));
    // One that a file describes is left as it is.
    installation.write("agents/interactiveAgent.yaml", "name: Mine\nmodel: demo/echo\n");
    installation.serve().stop();
    let agent = installation.json(&["agents", "get", "interactiveAgent"]);
    assert_eq!((&agent["name"], &agent["model"]), (&"Mine".into(), &"demo/echo".into()));
}

#[test]
fn mistakes_are_told() {
    let installation = Installation::new();
    let file = installation.write("agent.yaml", "name: Helper\nmodel: nothing\n");
    let create = ["agents", "create", file.to_str().unwrap()];
    installation.run(&create).assert_refused(&["model", "provider/model", "validation_error"]);
    installation.write("agent.yaml", "name: Helper\nmodel: demo/fast\ninstrutions: Be kind.\n");
    let unknown = ["agent.yaml:3: unknown key \"instrutions\"; did you mean instructions?"];
    installation.run(&create).assert_refused(&unknown);
    let update = ["agents", "update", "interactiveAgent", file.to_str().unwrap()];
    installation.run(&update).assert_refused(&unknown);
    installation.write("agent.yaml", "- a\n- b\n");
    installation.run(&create).assert_refused(&["agent.yaml", "not the definition of an agent"]);
    installation.write("agent.yaml", "name: [\n");
    installation.run(&create).assert_refused(&["agent.yaml:1:7", "unclosed"]);
    installation.run(&["agents", "create", "/no/such.yaml"]).assert_refused(&["/no/such.yaml"]);
    installation.run(&["agents", "get", "../keys"]).assert_refused(&["not_found"]);
}

#[test]
fn the_agent_of_conversations_waits_for_nobody() {
    let installation = Installation::new();
    installation.write("config.yaml", "default_model: demo/fast\n");
    let server = installation.serve();
    let key = server.shown_key().unwrap();
    let (_, session) = server.request("POST", "/conversation/sessions", key, r#"{"customer_id":"anna"}"#);
    let path = format!("/conversation/sessions/{}", session["id"].as_str().unwrap());
    let mut offset = 0;
    for text in ["run true", "ask me Which? A | B", "secret TOKEN", "remember hats", "todo look, find"] {
        let message = serde_json::json!({ "kind": "user_message", "text": text }).to_string();
        assert_eq!(server.request("POST", &format!("{path}/events"), key, &message).0, 201);
        'turn: loop {
            let poll = format!("{path}/events?kinds=status&min_offset={offset}&wait_for_data=30");
            let (status, events) = server.request("GET", &poll, key, "");
            assert_eq!(status, 200, "{events}");
            for event in events.as_array().unwrap() {
                offset = event["offset"].as_u64().unwrap() + 1;
                assert!(event["stage"].is_null(), "{text}: {event}");
                if event["status"] == "ready" {
                    break 'turn;
                }
            }
        }
        let (_, session) = server.request("GET", &path, key, "");
        assert_eq!(session["pending_actions"], serde_json::json!([]));
    }
    server.stop();
    let agent = installation.json(&["agents", "get", "interactiveAgent"]);
    let tools = agent["tools"].to_string();
    for asking in ["clarify", "terminal", "write_file", "request_secret", "web_extract"] {
        assert!(!tools.contains(asking), "{tools}");
    }
}

#[test]
fn a_file_that_names_a_tool_that_there_is_not_is_told_with_the_nearest_name() {
    let installation = Installation::new();
    let tools = "tools:\n- type: agent_toolset\n  configs:\n  - name: terminl\n";
    installation.write("agents/helper.yaml", format!("name: Helper\nmodel: demo/fast\n{tools}"));
    let server = installation.serve();
    server.wait_for_log("the nearest name is terminal");
    server.stop();
    let refused = installation.run(&["agents", "get", "helper"]);
    assert!(!refused.success && refused.stderr.contains("not_found"), "{refused:?}");
}

#[test]
fn fields_that_mean_nothing_are_refused_unless_the_configuration_ignores_them() {
    let installation = Installation::new();
    let body = r#"{"name":"A","model":"demo/fast","colour":"blue"}"#;
    let server = installation.serve();
    let key = server.shown_key().unwrap().to_owned();
    let (status, problem) = server.request("POST", "/v1/agents", &key, body);
    assert_eq!((status, &problem["field"]), (400, &"colour".into()), "{problem}");
    server.stop();
    installation.write("config.yaml", "unknown_fields: ignore\n");
    let server = installation.serve();
    assert_eq!(server.request("POST", "/v1/agents", &key, body).0, 201);
    server.wait_for_log("colour");
    server.stop();
}

#[test]
fn an_agent_is_made_from_what_is_shown_of_another() {
    let installation = Installation::new();
    let file = installation.write("agent.json", r#"{"name":"A","model":"demo/fast","tools":[]}"#);
    let made = installation.json(&["agents", "create", file.to_str().unwrap()]);
    installation.write("agent.json", made.to_string());
    let copy = installation.json(&["agents", "create", file.to_str().unwrap()]);
    assert_ne!(copy["id"], made["id"]);
    assert_eq!((&copy["name"], &copy["tools"]), (&made["name"], &serde_json::json!([])));
}
