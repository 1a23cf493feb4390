//! Turns with Python plugins, over HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use petasos_engine::add_plugin_tools;
use petasos_hooks::Bus;
use petasos_hooks::python::{Caller, GatewayHook, Plugin, Python, PythonHosts, Selection, Settings};
use petasos_sandbox::Supervisor;
use petasos_testkit::{Reply, Setup, TestServer, within};
use serde_json::{Value, json};
use tempfile::TempDir;

/// User code for a server: a plugin, and gateway hooks with their events. The directory holds it and what it writes.
pub(crate) async fn user_code(plugin: &str, hooks: &[(&str, &str)]) -> (PythonHosts, TempDir) {
    let home = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("plugins/mine/plugin.yaml", "name: mine\n");
    write("plugins/mine/__init__.py", plugin);
    for (number, (events, code)) in hooks.iter().enumerate() {
        write(&format!("hooks/hook-{number}/HOOK.yaml"), &format!("events: {events}\n"));
        write(&format!("hooks/hook-{number}/handler.py"), code);
    }
    let selection = Selection { enabled: vec!["mine".to_owned()], disabled: Vec::new() };
    let plugins = Plugin::discover(&home.path().join("plugins"), None, &selection);
    let hooks = GatewayHook::discover(&home.path().join("hooks"));
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let mut env: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
    env.insert("WORLD".to_owned(), home.path().to_str().unwrap().to_owned());
    let python = Python { program: "python3".to_owned(), env, directory: PathBuf::from("/") };
    let settings = Settings { start_time: Duration::from_secs(60), ..Settings::new(python) };
    let hosts = PythonHosts::start(settings, Supervisor::of_tests(), &plugins, &hooks);
    within("the user code", hosts.loaded()).await;
    (hosts, home)
}

/// A server with a plugin.
async fn start(code: &str) -> (TestServer, TempDir) {
    let (hosts, home) = user_code(code, &[]).await;
    let mut setup = Setup::default();
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
async fn turn(
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

#[tokio::test]
async fn a_skill_of_a_plugin_is_listed_and_viewed_but_in_no_prompt() {
    let code = r##"
import pathlib
def register(ctx):
    here = pathlib.Path(__file__).parent / "tea"
    (here / "references").mkdir(parents=True)
    (here / "SKILL.md").write_text("# Tea\nBoil water.")
    (here / "references" / "leaves.md").write_text("Green ones.")
    ctx.register_skill("tea", here / "SKILL.md", "Makes tea.")
"##;
    let (server, _home) = start(code).await;
    let session = server.session().await;
    let replies = [
        Reply::tool_call("skills_list", json!({})),
        Reply::tool_call("skill_view", json!({ "name": "mine:tea" })),
        Reply::tool_call("skill_view", json!({ "name": "mine:tea", "file_path": "references/leaves.md" })),
        Reply::tool_call("skill_view", json!({ "name": "mine:tea", "file_path": "../__init__.py" })),
        Reply::text("Done."),
    ];
    let results = turn(&server, &session, replies).await;
    assert!(results[0].0.contains("mine:tea") && results[0].0.contains("Makes tea."), "{results:?}");
    assert!(
        results[1].0.contains("Boil water.") && results[1].0.contains("references/leaves.md"),
        "{results:?}"
    );
    assert_eq!(results[2], ("Green ones.".to_owned(), false));
    assert!(results[3].1, "{results:?}");
    let prompt = server.model.requests()[0].body["messages"][0].to_string();
    assert!(!prompt.contains("mine:tea"), "{prompt}");
}

#[tokio::test]
async fn an_agent_of_a_plugin_runs_with_the_servers_model_and_asks_nobody() {
    let code = r#"
import json, os, threading
def register(ctx):
    def work():
        from gateway.run import _resolve_gateway_model, _resolve_runtime_agent_kwargs
        from run_agent import AIAgent
        agent = AIAgent(model=_resolve_gateway_model(), **_resolve_runtime_agent_kwargs(), max_iterations=2)
        results = [agent.run_conversation("first"), agent.run_conversation("second")]
        with open(os.environ["WORLD"] + "/results", "w") as f:
            f.write(json.dumps(results) + "\n")
    ctx.register_command("work", lambda raw: threading.Thread(target=work, daemon=True).start())
"#;
    let (hosts, home) = user_code(code, &[]).await;
    let server = TestServer::start().await;
    hosts.serve_sessions(Arc::new(server.engine.clone()), "openai/scripted");
    server.model.script([
        Reply::tool_call("write_file", json!({ "path": "a", "content": "b" })),
        Reply::text("It may not be written."),
        Reply::tool_call("todo", json!({ "todos": ["x"] })),
        Reply::tool_call("todo", json!({ "todos": ["x"] })),
        Reply::text("Never."),
    ]);
    within("the command", hosts.run_command("work", "", Caller::default())).await.unwrap();
    let results = within("the results", async {
        loop {
            let text = std::fs::read_to_string(home.path().join("results")).unwrap_or_default();
            if let Ok(results) = serde_json::from_str::<Vec<Value>>(&text) {
                return results;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(results[0]["final_response"], "It may not be written.");
    assert_eq!((&results[0]["completed"], &results[0]["api_calls"]), (&json!(true), &json!(2)));
    let told = server.model.requests()[1].body["messages"].to_string();
    assert!(told.contains("nobody attends"), "{told}");
    assert_eq!((&results[1]["completed"], &results[1]["interrupted"]), (&json!(false), &json!(true)));
    assert_eq!(results[0]["session_id"], results[1]["session_id"], "it goes on in its session");
}

#[tokio::test]
async fn slash_commands_of_plugins_are_listed_and_run_for_a_session() {
    let code = r#"
def register(ctx):
    def note(raw):
        return "noted: " + ctx.dispatch_tool("todo", {"todos": [{"id": "1", "content": raw, "status": "pending"}]})
    def fails(raw):
        raise ValueError("no")
    ctx.register_command("note", note, description="Notes something.", args_hint="<what>")
    ctx.register_command("fails", fails)
    ctx.register_command("quiet", lambda raw: None)
"#;
    let (server, _home) = start(code).await;
    let session = server.session().await;
    let listed = server.client.get("/v1/commands").await.expect(200);
    let first =
        json!({ "name": "note", "description": "Notes something.", "argsHint": "<what>", "plugin": "mine" });
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]), (3, &first));
    let path = format!("/v1/sessions/{session}/commands");
    let run = async |name: &str, args: &str| {
        server.client.post(&path, json!({ "name": name, "args": args })).await.expect(200)
    };
    let noted = run("note", "buy milk").await;
    assert!(noted["text"].as_str().is_some_and(|text| text.contains("buy milk")), "{noted}");
    assert_eq!(run("fails", "").await, json!({ "name": "fails", "text": "ValueError: no", "failed": true }));
    assert_eq!(run("quiet", "").await, json!({ "name": "quiet", "text": null, "failed": false }));
    let unknown = server.client.post(&path, json!({ "name": "other" })).await.expect(404);
    assert_eq!(unknown["error"], "not_found", "{unknown}");
    let nowhere = server.client.post("/v1/sessions/session_none/commands", json!({ "name": "note" })).await;
    nowhere.expect(404);
}
