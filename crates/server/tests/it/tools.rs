//! Turns that use the machine: commands, files, scripts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::join_all;
use petasos_core::ids::TenantId;
use petasos_store::SessionStore;
use petasos_testkit::{Reply, Setup, TestServer, no_command_below, within};
use petasos_tools::{SessionWorkspace, Workspaces};
use serde_json::{Value, json};
use tempfile::TempDir;

/// An agent whose tools never ask.
fn trusted() -> Value {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": policy }] })
}

/// Starts a server, and knows where its workspaces are.
async fn start() -> (TestServer, Arc<TempDir>) {
    let setup = Setup::default();
    let workspaces = Arc::clone(&setup.workspaces);
    (TestServer::start_with(setup).await, workspaces)
}

/// The result of the only tool call of a turn.
async fn result_of(server: &TestServer, agent: &str, tool: &str, input: Value) -> (String, bool) {
    let session = server.client.session(agent).await;
    server.model.script([Reply::tool_call(tool, input), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"), "{frames:#?}");
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    let payload = &result.data["payload"];
    (payload["content"][0]["text"].as_str().unwrap().to_owned(), payload["is_error"] == true)
}

/// Waits for a file of that name in any workspace, and returns its content.
async fn file(root: &Path, name: &str) -> String {
    fn find(directory: &Path, name: &str) -> Option<PathBuf> {
        std::fs::read_dir(directory).ok()?.flatten().find_map(|entry| {
            if entry.path().is_dir() {
                find(&entry.path(), name)
            } else {
                Some(entry.path()).filter(|path| path.ends_with(name))
            }
        })
    }
    within(name, async {
        loop {
            let content = find(root, name).and_then(|path| std::fs::read_to_string(path).ok());
            match content {
                Some(content) if content.ends_with('\n') => return content.trim().to_owned(),
                _ => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_command_asks_and_then_runs() {
    let (server, _workspaces) = start().await;
    let session = server.session().await;
    let call = Reply::tool_call("shell", json!({ "command": "echo $((6 * 7))", "timeout": "30" }));
    server.model.script([call, Reply::text("42, then.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("requires_action"));
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let action = &shown["pendingActions"][0];
    assert_eq!((&action["tool"], &action["input"]["timeout"]), (&json!("terminal"), &json!(30)));
    let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    server.client.event(&session, allow).await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    let text = result.data["payload"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({ "output": "42\n", "exit_code": 0 }));
}

#[tokio::test]
async fn to_look_at_a_background_command_asks_nobody_and_to_meddle_with_it_does() {
    let (server, _workspaces) = start().await;
    for (action, stop) in [
        ("list", "end_turn"),
        ("poll", "end_turn"),
        ("kill", "requires_action"),
        ("close", "requires_action"),
        ("write", "requires_action"),
        ("submit", "requires_action"),
    ] {
        let session = server.session().await;
        let input = json!({ "action": action, "process_id": "proc_1", "data": "ls" });
        let then = (stop == "end_turn").then(|| Reply::text("Done."));
        server.model.script(std::iter::once(Reply::tool_call("process", input)).chain(then));
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some(stop), "{action}");
    }
}

#[tokio::test]
async fn what_is_written_to_a_background_command_is_judged_like_one() {
    let (server, _workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    let shell = json!({ "command": "sh", "background": true });
    let made = result_of(&server, &agent, "terminal", shell).await.0;
    let process_id = serde_json::from_str::<Value>(&made).unwrap()["process_id"].clone();
    let submit = |data: &str| json!({ "action": "submit", "process_id": process_id, "data": data });
    let (text, is_error) = result_of(&server, &agent, "process", submit("rm -rf /")).await;
    assert!(is_error && text.contains("never run"), "{text}");

    let session = server.client.session(&agent).await;
    server.model.script([Reply::tool_call("process", submit("rm -rf victim")), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("requires_action"));
    let asked = frames.iter().find(|frame| frame.event == "agent.tool_use").unwrap();
    assert_eq!(asked.data["payload"]["danger"]["pattern_key"], "recursive_delete");
}

#[tokio::test]
async fn files_of_a_user_are_there_in_the_next_session() {
    let (server, _workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    let path = format!("/v1/agents/{agent}/sessions");
    let say = async |user: &str, tool: &str, input: Value| {
        let made = server.client.post(&path, json!({ "userId": user })).await.expect(201);
        let session = made["id"].as_str().unwrap();
        server.model.script([Reply::tool_call(tool, input), Reply::text("Done.")]);
        let mut stream = server.client.stream(session, "").await;
        server.client.message(session, "go").await.expect(200);
        let frames = stream.until_idle().await;
        let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
        result.data["payload"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    say("ada", "write_file", json!({ "path": "notes.txt", "content": "remember" })).await;
    assert!(say("ada", "read_file", json!({ "path": "notes.txt" })).await.contains("1|remember"));
    assert!(say("eve", "read_file", json!({ "path": "notes.txt" })).await.contains("is not there"));
}

#[tokio::test]
async fn a_script_may_do_what_the_agent_may_without_asking() {
    let (server, _workspaces) = start().await;
    let policy = json!({ "name": "execute_code", "permissionPolicy": { "type": "always_allow" } });
    let agent =
        server.agent_with(json!({ "tools": [{ "type": "agent_toolset", "configs": [policy] }] })).await;
    let code = "
from petasos_tools import search_files, write_file, ToolError
open('here.txt', 'w').write('x')
print(search_files('*.txt', target='files')['files'])
try:
    write_file('a', 'b')
except ToolError as error:
    print(error)
";
    let (text, is_error) = result_of(&server, &agent, "execute_code", json!({ "code": code })).await;
    let result: Value = serde_json::from_str(&text).unwrap();
    let output = result["output"].as_str().unwrap();
    assert!(
        !is_error && output.starts_with("['here.txt']\nwrite_file would have to ask the user"),
        "{result}"
    );
}

#[tokio::test]
async fn an_interrupt_ends_a_command_with_everything_it_has_started() {
    let (server, workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    let session = server.client.session(&agent).await;
    let command = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > child; sleep 600' & echo $$ > parent; wait";
    server.model.script([Reply::tool_call("terminal", json!({ "command": command }))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    for name in ["parent", "child"] {
        file(workspaces.path(), name).await;
    }
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    no_command_below(workspaces.path()).await;
}

#[tokio::test]
async fn a_hundred_sessions_run_commands_at_once_and_leave_no_process() {
    let (server, workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    server.model.respond(|request| {
        let last = request.body["messages"].as_array().and_then(|messages| messages.last()).cloned();
        if last.is_some_and(|message| message["role"] == "user") {
            let command = format!("sleep 600 & echo $! > {}.pid; echo ran", request.last_user_text());
            Reply::tool_call("terminal", json!({ "command": command }))
        } else {
            Reply::text("Done.")
        }
    });
    let turns = (0..100).map(async |number: usize| {
        let session = server.client.session(&agent).await;
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, &format!("run-{number}")).await.expect(200);
        let frames = stream.until_idle().await;
        assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
        let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
        let text = result.data["payload"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("ran\\n"), "{text}");
    });
    join_all(turns).await;
    for number in 0..100 {
        file(workspaces.path(), &format!("run-{number}.pid")).await;
    }
    no_command_below(workspaces.path()).await;
}

#[tokio::test]
async fn calls_that_make_no_sense_get_a_result_and_the_turn_goes_on() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let huge = format!("{{\"todos\": [\"{}\"]}}", "x".repeat(10_000_000));
    server.model.script([
        Reply::tool_calls([
            ("todo", json!("{\"todos\": [")),
            ("todo", json!("[1, 2]")),
            ("no_such_tool", json!({})),
            ("todo", json!({ "todos": 7 })),
        ]),
        Reply::tool_call("todo", json!(huge)),
        Reply::text("I see."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let results = frames.iter().filter(|frame| frame.event == "agent.tool_result");
    let results: Vec<(String, bool)> =
        results.map(|frame| (frame.text(), frame.data["payload"]["is_error"] == true)).collect();
    let expected = [
        "The arguments are not JSON",
        "must be a JSON object",
        "There is no tool no_such_tool",
        "todos",
        "more than 1048576 bytes",
    ];
    assert_eq!(results.len(), expected.len(), "{results:?}");
    for ((text, is_error), words) in results.iter().zip(expected) {
        assert!(*is_error && text.contains(words) && text.len() < 2000, "{words}: {text}");
    }
    // What was refused is not told to the model again and again.
    assert!(server.model.requests().last().unwrap().body.to_string().len() < 100_000);
}

#[tokio::test]
async fn what_the_model_is_told_about_all_tools_is_small() {
    let (server, _workspaces) = start().await;
    let agent = server.agent_with(json!({})).await;
    let made = server.client.post(&format!("/v1/agents/{agent}/sessions"), json!({ "userId": "ada" })).await;
    let session = made.expect(201)["id"].as_str().unwrap().to_owned();
    server.model.script([Reply::text("Hello.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hi").await.expect(200);
    stream.until_idle().await;
    let tools = server.model.requests()[0].body["tools"].clone();
    let sizes: Vec<(String, usize)> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| (tool["function"]["name"].to_string(), tool.to_string().len()))
        .collect();
    assert!(sizes.len() >= 10, "{sizes:?}");
    let total: usize = sizes.iter().map(|(_, size)| size).sum();
    assert!(total < 12_000, "{total} bytes: {sizes:?}");
}

/// Starts a command in the background of a session.
async fn start_in_the_background(server: &TestServer, session: &str, command: &str) {
    let command = json!({ "command": command, "background": true });
    server.model.script([Reply::tool_call("terminal", command), Reply::text("Done.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    stream.until_idle().await;
}

/// Starts one that goes on, and waits until it runs.
async fn in_the_background(server: &TestServer, session: &str, workspaces: &Path) {
    start_in_the_background(server, session, "echo $$ > pid; sleep 600").await;
    file(workspaces, "pid").await;
}

fn session_workspace(agent: &str, session: &str) -> SessionWorkspace {
    SessionWorkspace {
        tenant: TenantId::default_tenant(),
        agent_id: agent.parse().unwrap(),
        session_id: session.parse().unwrap(),
    }
}

async fn vanishes(path: &Path) {
    within("a workspace to go", async {
        while path.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_belongs_to_a_session_alone_goes_with_it() {
    let (server, workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    // What is a user's stays.
    let made = server.client.post(&format!("/v1/agents/{agent}/sessions"), json!({ "userId": "ada" })).await;
    let session = made.expect(201)["id"].as_str().unwrap().to_owned();
    let waits = "mkfifo ask; echo $PWD > waits; read word < ask; echo $word > heard; sleep 600";
    start_in_the_background(&server, &session, waits).await;
    let of_user = PathBuf::from(file(workspaces.path(), "waits").await);
    server.client.delete(&format!("/v1/sessions/{session}")).await;

    let session = server.client.session(&agent).await;
    let path = Workspaces::new(workspaces.path().to_owned()).path_of(&session_workspace(&agent, &session));
    in_the_background(&server, &session, workspaces.path()).await;
    server.client.post(&format!("/v1/sessions/{session}/archive"), json!({})).await.expect(200);
    no_command_below(&path).await;
    assert!(path.join("pid").exists(), "an archived session keeps its files");
    server.client.delete(&format!("/v1/sessions/{session}")).await;
    vanishes(&path).await;

    let session = server.client.session(&agent).await;
    let path = Workspaces::new(workspaces.path().to_owned()).path_of(&session_workspace(&agent, &session));
    in_the_background(&server, &session, workspaces.path()).await;
    server.client.delete(&format!("/v1/sessions/{session}")).await;
    no_command_below(&path).await;
    vanishes(&path).await;

    // The user's command, whose session was deleted before all that, still listens.
    let mut ask = std::fs::File::options().read(true).write(true).open(of_user.join("ask")).unwrap();
    ask.write_all(b"hello\n").unwrap();
    assert_eq!(file(&of_user, "heard").await, "hello");
}

#[tokio::test]
async fn files_of_a_session_that_was_deleted_as_the_server_died_go_at_the_next_start() {
    let (server, directory) = start().await;
    let agent = server.agent_with(trusted()).await;
    let (alive, deleted) = (server.client.session(&agent).await, server.client.session(&agent).await);
    let workspaces = Workspaces::new(directory.path().to_owned());
    let [alive, deleted] = [alive, deleted].map(|session| session_workspace(&agent, &session));
    for own in [&alive, &deleted] {
        std::fs::create_dir_all(workspaces.path_of(own)).unwrap();
        workspaces.note_removal(own).unwrap();
    }
    // Straight from the store, as if everything after that had not come about.
    server.store().delete_session(&deleted.tenant, &deleted.session_id).await.unwrap();
    let _server = server.restart().await;
    vanishes(&workspaces.path_of(&deleted)).await;
    within("the notes to go", async {
        while !workspaces.noted_removals().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(workspaces.path_of(&alive).exists());
}

#[tokio::test]
async fn a_picture_of_the_workspace_reaches_the_model_as_a_picture() {
    let (server, _workspaces) = start().await;
    let agent = server.agent_with(trusted()).await;
    let session = server.client.session(&agent).await;
    let header = r"\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\002\200\000\000\001\340";
    let draw = json!({ "command": format!("printf '{header}' > a.png") });
    let calls =
        [Reply::tool_call("terminal", draw), Reply::tool_call("read_file", json!({ "path": "a.png" }))];
    server.model.script(calls.into_iter().chain([Reply::text("A hat.")]));
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let messages = server.model.requests().pop().unwrap().body["messages"].clone();
    let all = messages.as_array().unwrap();
    assert_eq!(all[all.len() - 2]["content"], "a.png: image/png, 640x480 pixels, 24 bytes", "{messages}");
    let url = all[all.len() - 1]["content"][1]["image_url"]["url"].as_str().unwrap();
    assert!(url.starts_with("data:image/png;base64,iVBORw0KGgo"), "{url}");
    let shown = frames.iter().rfind(|frame| frame.event == "agent.tool_result").unwrap();
    assert!(shown.data.to_string().contains("[image: image/png"), "{shown:?}");
}
