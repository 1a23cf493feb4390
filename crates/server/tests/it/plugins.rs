//! Turns with Python plugins, over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use petasos_engine::add_plugin_tools;
use petasos_hooks::python::{GatewayHook, Plugin, Python, PythonHosts, Selection, Settings};
use petasos_hooks::{Bus, hook_environment};
use petasos_sandbox::Supervisor;
use petasos_testkit::{Reply, Setup, TestServer, within};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The directory of user code, which holds it and what it writes.
pub(crate) struct World(TempDir);

impl World {
    pub(crate) fn new() -> Self {
        World(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &std::path::Path {
        self.0.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// User code for a server: a plugin, and gateway hooks with their events. The directory holds it and what it writes.
pub(crate) async fn user_code(plugin: &str, hooks: &[(&str, &str)]) -> (PythonHosts, TempDir) {
    let world = World::new();
    let hosts = user_code_in(&world, plugin, hooks, &[]).await;
    (hosts, world.0)
}

/// The same in a directory, with variables of its own.
pub(crate) async fn user_code_in(
    world: &World,
    plugin: &str,
    hooks: &[(&str, &str)],
    variables: &[(String, String)],
) -> PythonHosts {
    world.write("plugins/mine/plugin.yaml", "name: mine\n");
    world.write("plugins/mine/__init__.py", plugin);
    for (number, (events, code)) in hooks.iter().enumerate() {
        world.write(&format!("hooks/hook-{number}/HOOK.yaml"), &format!("events: {events}\n"));
        world.write(&format!("hooks/hook-{number}/handler.py"), code);
    }
    let selection = Selection { enabled: vec!["mine".to_owned()], disabled: Vec::new() };
    let plugins = Plugin::discover(&world.path().join("plugins"), None, &selection);
    let hooks = GatewayHook::discover(&world.path().join("hooks"));
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let mut env: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    env.insert("WORLD".to_owned(), world.path().to_str().unwrap().to_owned());
    env.extend(variables.iter().cloned());
    let env = hook_environment(env);
    let python = Python { program: "python3".to_owned(), env, directory: PathBuf::from("/") };
    let settings = Settings { start_time: Duration::from_secs(60), ..Settings::new(python) };
    let hosts = PythonHosts::start(settings, Supervisor::of_tests(), &plugins, &hooks);
    within("the user code", hosts.loaded()).await;
    hosts
}

/// A server with a plugin.
pub(crate) async fn start(code: &str) -> (TestServer, TempDir) {
    start_with(code, Setup::default()).await
}

/// The same, with other settings.
pub(crate) async fn start_with(code: &str, mut setup: Setup) -> (TestServer, TempDir) {
    let (hosts, home) = user_code(code, &[]).await;
    add_plugin_tools(&mut setup.tools, &hosts, &BTreeSet::new());
    setup.plugin_skills = hosts.skills();
    setup.commands = Some(hosts.clone());
    setup.hooks = Arc::new(Bus::new(vec![Arc::new(hosts.clone())]));
    let server = TestServer::start_with(setup).await;
    hosts.serve_sessions(Arc::new(server.engine.clone()), "openai/scripted");
    (server, home)
}

/// A session whose tools never ask.
async fn trusting(server: &TestServer) -> String {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    server.client.session(&agent).await
}

/// Runs a turn and returns the results of its tool calls.
pub(crate) async fn turn(
    server: &TestServer,
    session: &str,
    replies: impl IntoIterator<Item = Reply>,
) -> Vec<(String, bool)> {
    server.model.script(replies);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"), "{frames:#?}");
    let results = frames.iter().filter(|frame| frame.event == "agent.tool_result");
    results.map(|frame| (frame.text(), frame.data["payload"]["is_error"] == true)).collect()
}

#[tokio::test]
async fn a_plugin_blocks_edits_adds_context_and_changes_results() {
    let code = r#"
import os
def guard(tool_name, args, **kw):
    if tool_name == "terminal" and "rm -rf" in args["command"]:
        return {"action": "block", "message": "not on my watch"}
    if tool_name == "write_file":
        args["content"] = args["content"].upper()
def recall(user_message, **kw):
    return {"context": "The user said " + user_message}
def mark(tool_name, result, **kw):
    return "marked: " + result if tool_name == "read_file" else None
def note(assistant_response, conversation_history, **kw):
    open(os.environ["WORLD"] + "/said", "w").write(assistant_response + " after %d" % len(conversation_history))
def register(ctx):
    ctx.register_hook("pre_tool_call", guard)
    ctx.register_hook("pre_llm_call", recall)
    ctx.register_hook("transform_tool_result", mark)
    ctx.register_hook("post_llm_call", note)
"#;
    let (server, home) = start(code).await;
    let session = trusting(&server).await;
    let replies = [
        Reply::tool_call("terminal", json!({ "command": "rm -rf /tmp/x" })),
        Reply::tool_call("write_file", json!({ "path": "a.txt", "content": "hello" })),
        Reply::tool_call("read_file", json!({ "path": "a.txt" })),
        Reply::text("Done."),
    ];
    let results = turn(&server, &session, replies).await;
    assert!(results[0].1 && results[0].0.contains("not on my watch"), "{results:?}");
    assert!(results[2].0.starts_with("marked: ") && results[2].0.contains("HELLO"), "{results:?}");
    let requests = server.model.requests();
    assert!(
        requests.iter().all(|request| request.last_user_text() == "go\n\nThe user said go"),
        "{requests:?}"
    );
    let log = Value::Array(server.client.events(&session).await).to_string();
    assert!(!log.contains("The user said"), "context is never stored");
    within("the observer", async {
        while std::fs::read_to_string(home.path().join("said")).unwrap_or_default() != "Done. after 8" {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_tool_of_a_plugin_is_offered_asks_and_calls_others() {
    let code = r#"
import json
SCHEMA = {"name": "greet", "description": "Greets somebody.",
          "parameters": {"type": "object", "properties": {"who": {"type": "string"}}, "required": ["who"]}}
def register(ctx):
    def greet(args, **kwargs):
        noted = ctx.dispatch_tool("todo", {"todos": [{"id": "1", "content": "greet", "status": "pending"}]})
        return json.dumps({"greeting": "Hello " + args["who"], "noted": "greet" in noted})
    ctx.register_tool(name="greet", toolset="hello", schema=SCHEMA, handler=greet)
    ctx.register_tool(name="terminal", toolset="hello", schema=SCHEMA, handler=greet, override=True)
    ctx.register_tool(name="with space", toolset="hello", schema=SCHEMA, handler=greet)
"#;
    let (server, _home) = start(code).await;
    let session = trusting(&server).await;
    let replies = [Reply::tool_call("greet", json!({ "who": "Ur" })), Reply::text("Done.")];
    let results = turn(&server, &session, replies).await;
    assert_eq!(results, [(r#"{"greeting": "Hello Ur", "noted": true}"#.to_owned(), false)]);
    let tools = server.model.requests()[0].body["tools"].clone();
    let tools = tools.as_array().unwrap();
    let named = |name: &str| tools.iter().filter(|tool| tool["function"]["name"] == name).collect::<Vec<_>>();
    assert_eq!(named("greet")[0]["function"]["description"], "Greets somebody.");
    assert_ne!(
        named("terminal")[0]["function"]["description"],
        "Greets somebody.",
        "it may not replace a tool"
    );
    assert!(named("with space").is_empty());

    let careful = server.session().await;
    server.model.script([Reply::tool_call("greet", json!({ "who": "Ur" }))]);
    let mut stream = server.client.stream(&careful, "").await;
    server.client.message(&careful, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("requires_action"));
}

#[tokio::test]
async fn messages_of_plugins_start_turns_and_guide_them() {
    let code = r#"
def register(ctx):
    said = []
    def ended(session_id, **kw):
        if not said:
            said.append(ctx.inject_message("one more thing"))
    ctx.register_hook("on_session_end", ended)
"#;
    let (server, _home) = start(code).await;
    let session = server.session().await;
    server.model.script([Reply::text("First."), Reply::text("Second.")]);
    server.client.message(&session, "go").await.expect(200);
    within("the second turn", server.model.wait_for_requests(2)).await;
    assert_eq!(server.model.requests()[1].last_user_text(), "one more thing");
}

#[tokio::test]
async fn a_host_that_keeps_dying_is_said_in_health_and_turns_go_on() {
    let code =
        "import os\ndef register(ctx):\n    ctx.register_hook('pre_llm_call', lambda **kw: os._exit(1))\n";
    let (server, _home) = start(code).await;
    assert_eq!(server.client.get("/health").await.expect(200)["status"], "ok");
    let session = server.session().await;
    for _ in 0..10 {
        turn(&server, &session, [Reply::text("Done.")]).await;
    }
    let health = within("the pause", async {
        loop {
            let health = server.client.get("/health").await.expect(200);
            if health["status"] == "degraded" {
                return health;
            }
        }
    })
    .await;
    let problem = health["problems"][0].as_str().unwrap();
    assert!(problem.contains("plugin mine died 10 times in a row"), "{health}");
    turn(&server, &session, [Reply::text("Done.")]).await;
}
