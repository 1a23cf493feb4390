//! Agents as files.

use crate::installation::Installation;

const HELPER: &str = "name: Helper\nmodel: demo/fast\nmetadata: { area: media, kind: a }\n";

fn version(installation: &Installation) -> (i64, String) {
    let agent = installation.json(&["agents", "get", "helper"]);
    (agent["version"].as_i64().unwrap(), agent["name"].as_str().unwrap().to_owned())
}

#[test]
fn they_follow_their_files() {
    let installation = Installation::new();
    installation.write("agents/helper.yaml", HELPER);
    let server = installation.serve();
    assert_eq!(version(&installation), (1, "Helper".to_owned()));

    installation.write("agents/helper.yaml", HELPER.replace("Helper", "Better").replace(", kind: a", ""));
    server.wait_for_log("version=2");
    assert_eq!(version(&installation), (2, "Better".to_owned()));
    let metadata = &installation.json(&["agents", "get", "helper"])["metadata"];
    assert_eq!(metadata, &serde_json::json!({ "area": "media" }));

    // A broken file leaves the agent as it was.
    let file = installation.write("agents/helper.yaml", "name: Broken\nmodel: echo\n");
    server.wait_for_log(&format!("{}:2: model:", file.display()));
    assert_eq!(version(&installation), (2, "Better".to_owned()));

    installation.write("agents/other.json", r#"{"name":"Other","model":"demo/fast"}"#);
    server.wait_for_log("agent=other version=1");
    std::fs::remove_file(file).unwrap();
    installation.write("agents/third.yml", "name: Third\nmodel: demo/fast\n");
    server.wait_for_log("agent=third version=1");
    assert_eq!(version(&installation), (2, "Better".to_owned()));
    server.stop();
}

#[test]
fn a_start_makes_no_version_unless_something_changed() {
    let installation = Installation::new();
    installation.write("agents/helper.yaml", HELPER);
    installation.serve().stop();
    installation.serve().stop();
    assert_eq!(version(&installation), (1, "Helper".to_owned()));
    // What was changed by command in between is what the file says again.
    let change = installation.write("change.yaml", "name: Changed\nmetadata: { more: yes }\n");
    installation.json(&["agents", "update", "helper", change.to_str().unwrap()]);
    installation.serve().stop();
    assert_eq!(version(&installation), (3, "Helper".to_owned()));
    assert!(installation.json(&["agents", "get", "helper"])["metadata"]["more"].is_null());
}

#[test]
fn a_broken_file_is_told_with_file_line_and_problem_and_others_are_read() {
    let installation = Installation::new();
    let file = installation.write("agents/broken.yaml", "name: A\nmodel: demo/fast\ninstruction: x\n");
    installation.write("agents/helper.yaml", HELPER);
    let listed = installation.run(&["agents", "list"]);
    assert!(listed.success && listed.stdout.contains("helper"), "{listed:?}");
    let place = format!("{}:3: unknown key \"instruction\"; did you mean instructions?", file.display());
    assert!(listed.stderr.contains(&place), "{listed:?}");
    assert!(!listed.stdout.contains("broken"));
}

#[test]
fn a_file_that_could_not_be_used_is_tried_again_without_a_change_of_its_own() {
    let installation = Installation::new();
    let owner = installation.write("agents/helper.json", r#"{"name":"Owner","model":"demo/fast"}"#);
    let other = installation.write("agents/helper.yaml", HELPER);
    let server = installation.serve();
    server.wait_for_log(&format!("{}: {} has the same name", other.display(), owner.display()));
    assert_eq!(version(&installation), (1, "Owner".to_owned()));
    std::fs::remove_file(owner).unwrap();
    server.wait_for_log("version=2");
    assert_eq!(version(&installation), (2, "Helper".to_owned()));
    server.stop();
}

#[test]
fn they_belong_to_the_default_tenant_and_can_be_archived() {
    let installation = Installation::new();
    installation.write("agents/helper.yaml", HELPER);
    installation.run(&["agents", "get", "helper", "--tenant", "acme"]).assert_refused(&["not_found"]);
    assert!(installation.json(&["agents", "archive", "helper"])["archivedAt"].is_string());
    assert!(installation.json(&["agents", "get", "helper"])["archivedAt"].is_string());
    let refused = installation.run(&["run", "--agent", "helper", "Hello"]);
    assert_eq!(refused.code, Some(1));
    for words in ["agent_archived", "an agent is archived although", "write the file anew to bring it back"] {
        assert!(refused.stderr.contains(words), "{refused:?}");
    }
}

#[test]
fn a_file_that_is_written_anew_brings_an_archived_agent_back() {
    let installation = Installation::new();
    installation.write("agents/helper.yaml", HELPER);
    let archived = || installation.json(&["agents", "get", "helper"])["archivedAt"].is_string();
    for text in [HELPER.to_owned(), HELPER.replace("Helper", "Better")] {
        installation.json(&["agents", "archive", "helper"]);
        assert!(archived());
        installation.write("agents/helper.yaml", text);
        assert!(!archived());
    }
    let run = installation.run(&["run", "--agent", "helper", "Hello"]);
    assert!(run.success && run.stderr.is_empty(), "{run:?}");
}
