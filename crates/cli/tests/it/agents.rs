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
