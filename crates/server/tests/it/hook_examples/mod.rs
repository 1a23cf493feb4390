//! The ways in which plugins and gateway hooks are commonly written, each in a fixture beside this file.

use std::path::Path;
use std::sync::Arc;

use petasos_hooks::{Bus, GatewayEvents};
use petasos_testkit::{Loopback, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

use crate::plugins::{World, user_code_in};

const PLUGIN: &str = include_str!("plugin.py");
const HANDLERS: [(&str, &str); 5] = [
    ("['agent:start', 'agent:end', 'agent:step']", include_str!("activity_log.py")),
    ("['agent:step']", include_str!("long_task_alert.py")),
    ("['command:*']", include_str!("command_log.py")),
    ("['session:start', 'session:reset']", include_str!("session_webhook.py")),
    ("['gateway:startup']", include_str!("boot_checklist.py")),
];

/// A home with the modules and programs that the examples call.
fn world() -> World {
    let world = World::new();
    world.write("modules/httpx.py", include_str!("httpx.py"));
    world.write("bin/osascript", "#!/bin/sh\necho \"$2\" >> \"$WORLD/notified\"\n");
    let program = world.path().join("bin/osascript");
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.write(".petasos/BOOT.md", "1. Look at the logs.\n");
    world
}

/// The environment in which the examples run.
fn variables(world: &Path) -> Vec<(String, String)> {
    let path = std::env::vars_os().find(|(name, _)| name == "PATH").unwrap().1.into_string().unwrap();
    let here = world.display();
    let pairs = [
        ("HOME", here.to_string()),
        ("PATH", format!("{here}/bin:{path}")),
        ("PYTHONPATH", format!("{here}/modules")),
        ("TELEGRAM_BOT_TOKEN", "t0ken".to_owned()),
        ("TELEGRAM_HOME_CHANNEL", "7".to_owned()),
    ];
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The lines of a file, as soon as one of them has these words.
async fn lines_with(path: &Path, words: &str) -> Vec<String> {
    within(words, async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.contains(words) {
                return text.lines().map(str::to_owned).collect();
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

async fn confirm(server: &TestServer, session: &str) {
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let id = &shown["pendingActions"][0]["id"];
    let answer = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "allow" });
    server.client.event(session, answer).await.expect(200);
}

#[tokio::test]
async fn plugin_examples_work() {
    let world = world();
    let hosts = user_code_in(&world, PLUGIN, &[], &variables(world.path())).await;
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(Setup { hooks: bus, ..Setup::default() }).await;
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    let key = format!("sk-{}", "a1".repeat(20));
    server.model.script([
        Reply::tool_call("write_file", json!({ "path": "key.txt", "content": key })),
        Reply::tool_call("read_file", json!({ "path": "key.txt" })),
        Reply::tool_call("read_file", json!({ "path": "missing.txt" })),
        Reply::tool_call("terminal", json!({ "command": "find . ; seq 20000" })),
        Reply::tool_call("delegate_task", json!({ "goal": "look it up" })),
        Reply::text("Found it."),
        Reply::tool_call("terminal", json!({ "command": "rm -r build" })),
        Reply::text("Done."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let mut frames = stream.until_idle().await;
    confirm(&server, &session).await;
    frames.extend(stream.until_idle().await);
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let results: Vec<String> =
        frames.iter().filter(|frame| frame.event == "agent.tool_result").map(|frame| frame.text()).collect();
    assert!(results[1].contains("[REDACTED]") && !results[1].contains(&key), "{}", results[1]);
    assert!(results[3].contains("the first 40 shown; exit 0 in /"), "{}", results[3]);
    let read = server.model.requests()[0].last_user_text();
    assert!(
        read.contains("Recalled:\n- the user likes short answers\n\nAsk before anything is deleted."),
        "{read}"
    );

    let log =
        lines_with(&world.path().join("plugin.log"), &format!("TOOK session={session} ")).await.join("\n");
    for words in [
        "CALLED session=session_",
        "tool=delegate_task",
        "CHILD parent=session_",
        "status=completed",
        "ANSWERED session=",
        "chars=5",
        "DECIDED once: rm -r build for session_",
        "completed=True interrupted=False",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let counts = log.split("counts=").last().unwrap().lines().next().unwrap();
    let counts: Value = serde_json::from_str(counts).unwrap();
    assert_eq!((&counts[0]["terminal"], &counts[1]["read_file"]), (&json!(2), &json!(1)), "{counts}");
    let notified = lines_with(&world.path().join("notified"), "display notification").await;
    assert!(
        notified[0].contains("rm -r build") && notified[0].contains("with title \"session_"),
        "{notified:?}"
    );
    let posted = lines_with(&world.path().join("posted.jsonl"), "/store").await.join("\n");
    assert!(posted.contains("/recall") && posted.contains("\"assistant\": \"Done.\""), "{posted}");
}

#[tokio::test]
async fn gateway_examples_work() {
    let world = world();
    let hosts = user_code_in(&world, PLUGIN, &HANDLERS, &variables(world.path())).await;
    let bus = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(Setup { hooks: bus.clone(), ..Setup::default() }).await;
    hosts.serve_sessions(Arc::new(server.engine.clone()), "openai/scripted");
    let agent = server.agent_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;

    server.model.script([Reply::text("All is well.")]);
    GatewayEvents::new(bus.clone(), hosts.clone(), vec!["loopback".to_owned()]).startup().await;
    lines_with(&world.path().join("boot.log"), "done: All is well.").await;
    assert!(server.model.requests()[0].last_user_text().contains("1. Look at the logs."));

    let channel = Loopback::new(&server.engine, bus, &hosts, &agent);
    assert_eq!(channel.say("stranger", "hello").await, None);
    assert_eq!(channel.say("7", "nobody asked").await, None);
    server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Done.")]);
    assert_eq!(channel.say("7", "@agent please").await.as_deref(), Some("Done."));
    assert!(server.model.requests()[1].last_user_text().starts_with("nobody asked\n@agent please"));
    assert_eq!(channel.say("7", "/new").await.as_deref(), Some("A new session."));

    let home = world.path().join(".petasos");
    let activity = lines_with(&home.join("activity.jsonl"), "agent:end").await;
    assert_eq!(activity.len(), 4, "{activity:?}");
    let commands = lines_with(&home.join("logs/commands.jsonl"), "\"new\"").await;
    assert!(commands[0].contains("\"platform\": \"loopback\""), "{commands:?}");
    let posted = lines_with(&world.path().join("posted.jsonl"), "session:reset").await.join("\n");
    for words in ["\"event\": \"session:start\"", "bott0ken/send", "2 steps so far, last: todo"] {
        assert!(posted.contains(words), "{words}: {posted}");
    }
}
