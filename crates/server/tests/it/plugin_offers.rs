//! What plugins bring besides hooks and tools, over HTTP: skills, commands, agents.

use std::sync::Arc;

use petasos_hooks::python::Caller;
use petasos_testkit::{Reply, TestServer, within};
use serde_json::{Value, json};

use crate::plugins::{start, turn, user_code};

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
        // The call that is one too many is interrupted; an answer could be there first.
        Reply::text("Never.").stall_after_chunks(0),
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
    def delegate(raw):
        return ctx.dispatch_tool("delegate_task", {"tasks": [{"goal": raw}]})
    def fails(raw):
        raise ValueError("no")
    ctx.register_command("note", note, description="Notes something.", args_hint="<what>")
    ctx.register_command("fails", fails)
    ctx.register_command("delegate", delegate)
    ctx.register_command("quiet", lambda raw: None)
"#;
    let (server, _home) = start(code).await;
    let session = server.session().await;
    let listed = server.client.get("/v1/commands").await.expect(200);
    let first =
        json!({ "name": "note", "description": "Notes something.", "argsHint": "<what>", "plugin": "mine" });
    assert_eq!((listed["data"].as_array().unwrap().len(), &listed["data"][0]), (4, &first));
    let path = format!("/v1/sessions/{session}/commands");
    let run = async |name: &str, args: &str| {
        server.client.post(&path, json!({ "name": name, "args": args })).await.expect(200)
    };
    let noted = run("note", "buy milk").await;
    assert!(noted["text"].as_str().is_some_and(|text| text.contains("buy milk")), "{noted}");
    assert_eq!(run("fails", "").await, json!({ "name": "fails", "text": "ValueError: no", "failed": true }));
    let refused = run("delegate", "Count them.").await.to_string();
    assert!(refused.contains("only for calls of your own"), "{refused}");
    assert_eq!(run("quiet", "").await, json!({ "name": "quiet", "text": null, "failed": false }));
    let unknown = server.client.post(&path, json!({ "name": "other" })).await.expect(404);
    assert_eq!(unknown["error"], "not_found", "{unknown}");
    let nowhere = server.client.post("/v1/sessions/session_none/commands", json!({ "name": "note" })).await;
    nowhere.expect(404);
}
