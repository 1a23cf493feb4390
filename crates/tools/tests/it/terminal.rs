//! `terminal`.

use petasos_tools::Risk;
use serde_json::{Map, Value, json};

use crate::world::World;

#[tokio::test]
async fn commands_run_in_the_workspace_and_find_their_files_again() {
    let world = World::new();
    let result = world.ok("terminal", json!({ "command": "pwd; echo hello > greeting; exit 3" })).await;
    assert_eq!(result["exit_code"], 3);
    assert_eq!(result["output"], format!("{}\n", world.workspace().display()));
    let result = world.ok("shell", json!({ "command": "cat greeting; mkdir below" })).await;
    assert_eq!(result, json!({ "output": "hello\n", "exit_code": 0 }));
    let result = world.ok("terminal", json!({ "command": "basename $PWD", "workdir": "below" })).await;
    assert_eq!(result["output"], "below\n");
}

#[tokio::test]
async fn workspaces_do_not_see_each_other() {
    let world = World::new();
    let change = |tenant: &str, agent: &str, user: Option<&str>, session: &str| {
        let mut call = world.invocation(json!({ "command": "pwd; ls; touch file" }));
        call.tenant = tenant.parse().unwrap();
        call.agent_id = agent.parse().unwrap();
        call.user_id = user.map(str::to_owned);
        call.session_id = session.parse().unwrap();
        call
    };
    let mut outputs = std::collections::BTreeSet::new();
    for call in [
        change("default", "agent_1", Some("ada"), "session_1"),
        change("default", "agent_1", Some("ada/../eve"), "session_1"),
        change("default", "agent_1", Some(""), "session_1"),
        change("default", "agent_1", None, "session_1"),
        change("default", "agent_1", None, "session_2"),
        change("default", "agent_1", Some("session_1"), "session_1"),
        change("default", "agent_2", Some("ada"), "session_1"),
        change("other", "agent_1", Some("ada"), "session_1"),
        change("default", "AGENT_1", Some("ada"), "session_1"),
    ] {
        let output = world.call("terminal", call).await.text;
        assert!(!output.contains("file"), "{output}");
        assert!(outputs.insert(output.clone()), "{output}");
    }
    let again = change("default", "agent_1", Some("ada"), "session_99");
    assert!(world.call("terminal", again).await.text.contains("file"));
    let path = world.workspace();
    let other = path.parent().unwrap().display();
    let result =
        world.ok("terminal", json!({ "command": format!("ls {other}/*; cat {other}/../../x") })).await;
    assert_ne!(result["exit_code"], 0);
}

#[tokio::test]
async fn time_is_limited() {
    let world = World::new();
    let text = world.error("terminal", json!({ "command": "echo begun; sleep 60", "timeout": 1 })).await;
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((result["output"].as_str(), result["exit_code"].as_i64()), (Some("begun\n"), Some(124)));
    assert!(
        world.error("terminal", json!({ "command": "true", "timeout": 9999 })).await.contains("1 to 600")
    );
}

#[tokio::test]
async fn secrets_are_in_the_environment_and_nowhere_else() {
    let world = World::new();
    let mut call = world
        .invocation(json!({ "command": "test -n \"$TOKEN\" && echo \"it is $TOKEN\"; echo $TOKEN > f" }));
    call.secrets = [("TOKEN".to_owned(), "s3cret-value".into())].into();
    let output = world.call("terminal", call).await;
    assert!(output.text.contains("it is [redacted]"), "{}", output.text);
}

#[tokio::test]
async fn a_command_can_have_a_terminal() {
    let world = World::new();
    let result = world
        .ok("terminal", json!({ "command": "tty && printf '\\033[1mbold\\033[0m\\n'", "pty": true }))
        .await;
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("/dev/pts/") && output.ends_with("bold\n"), "{output:?}");
}

#[tokio::test]
async fn commands_of_the_hard_list_never_run() {
    let world = World::new();
    let tool = world.toolbox.get("terminal").unwrap();
    let input = |command: &str| Map::from_iter([("command".to_owned(), command.into())]);
    assert!(matches!(tool.risk(&input("r''m -rf /")), Risk::Forbidden { .. }));
    assert!(
        matches!(tool.risk(&input("git push -f")), Risk::Dangerous(danger) if danger.pattern_key == "git_force_push")
    );
    assert_eq!(tool.risk(&input("ls")), Risk::Ordinary);
    assert!(world.error("terminal", json!({ "command": "shutdown now" })).await.contains("never run"));
}
