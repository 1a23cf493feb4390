//! How much workspaces may take on the disk: file tools refuse, and commands are ended with the reason.

use std::path::PathBuf;

use petasos_sandbox::Settings;
use petasos_testkit::{Reply, Setup, TestServer, tools, within};
use petasos_tools::{Toolbox, WorkspaceLimits, Workspaces};
use serde_json::{Value, json};

const MEGABYTE: u64 = 1 << 20;

async fn start(limits: WorkspaceLimits) -> (TestServer, String, Setup) {
    let mut setup = Setup::default();
    let root: PathBuf = setup.workspaces.path().to_owned();
    let mut sandbox = Settings::default();
    sandbox.limits.unnamed_bytes = limits.max_bytes;
    let mut options = tools::builtin_options(root.clone(), sandbox);
    options.workspaces = Workspaces::new(root).with_limits(limits);
    setup.tools = Toolbox::builtin(options);
    let server = TestServer::start_with(setup.clone()).await;
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!({ "tools": [{ "type": "agent_toolset", "defaultConfig": policy }] });
    let agent = server.agent_with(tools).await;
    (server, agent, setup)
}

/// The result of a call, and whether it failed.
async fn call(server: &TestServer, session: &str, tool: &str, input: Value) -> (Value, bool) {
    server.model.script([Reply::tool_call(tool, input), Reply::text("Done.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"), "{frames:#?}");
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    let payload = &result.data["payload"];
    let text = payload["content"][0]["text"].as_str().unwrap();
    let result = serde_json::from_str(text).unwrap_or_else(|_| json!({ "error": text }));
    (result, payload["is_error"] == true)
}

#[tokio::test]
async fn commands_that_write_more_than_a_workspace_may_hold_are_ended() {
    let limits = WorkspaceLimits { max_bytes: 20 * MEGABYTE, total_max_bytes: None };
    let (server, agent, _setup) = start(limits).await;
    let session = server.client.session(&agent).await;
    let fill = "head -c 30000000 /dev/urandom > big; echo written; sleep 600";
    let (result, is_error) = call(&server, &session, "terminal", json!({ "command": fill })).await;
    let reason = result["error"].as_str().unwrap();
    assert!(is_error && reason.contains("workspaces.max_bytes allows 20971520"), "{result}");

    let write = json!({ "path": "more", "content": "x" });
    let (result, is_error) = call(&server, &session, "write_file", write.clone()).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");
    let read = json!({ "path": "big", "limit": 1 });
    let (_, _) = call(&server, &session, "read_file", read).await;

    // A command is how room is made again.
    let (result, is_error) = call(&server, &session, "terminal", json!({ "command": "rm big" })).await;
    assert!(!is_error, "{result}");
    let (result, is_error) = call(&server, &session, "write_file", write).await;
    assert!(!is_error, "{result}");
}

#[tokio::test]
async fn a_workspace_that_is_many_times_too_large_can_be_emptied_and_not_filled() {
    let limits = WorkspaceLimits { max_bytes: MEGABYTE, total_max_bytes: None };
    let (server, agent, _setup) = start(limits).await;
    let session = server.client.session(&agent).await;
    let code = "open('big', 'wb').write(b'x' * 30000000)";
    let (result, is_error) = call(&server, &session, "execute_code", json!({ "code": code })).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");

    for command in ["cat big > more", "head -c 9 big >> more"] {
        let (result, is_error) = call(&server, &session, "terminal", json!({ "command": command })).await;
        assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");
    }
    let (result, _) = call(&server, &session, "terminal", json!({ "command": "ls -s big more" })).await;
    assert!(result["output"].as_str().unwrap().contains("0 more"), "{result}");

    let (result, is_error) = call(&server, &session, "terminal", json!({ "command": "rm big" })).await;
    assert!(!is_error, "{result}");
    let write = json!({ "path": "small", "content": "x" });
    let (result, is_error) = call(&server, &session, "write_file", write).await;
    assert!(!is_error, "{result}");
}

#[tokio::test]
async fn a_command_that_fills_holes_of_a_full_workspace_is_the_last() {
    let limits = WorkspaceLimits { max_bytes: MEGABYTE, total_max_bytes: None };
    let (server, agent, _setup) = start(limits).await;
    let session = server.client.session(&agent).await;
    let fill = "import mmap, time\nfile = open('holes', 'r+b')\nholes = mmap.mmap(file.fileno(), 60000000)\n\
        for at in range(0, 60000000, 4096): holes[at] = 1\nholes.flush()\ntime.sleep(250)\n";
    let script = json!({ "path": "fill.py", "content": fill });
    assert!(!call(&server, &session, "write_file", script).await.1);
    let code = "open('holes', 'wb').truncate(60000000)\nopen('big', 'wb').write(b'x' * 3000000)";
    assert!(call(&server, &session, "execute_code", json!({ "code": code })).await.1);
    let fill = json!({ "command": "python3 fill.py" });
    let (result, is_error) = call(&server, &session, "terminal", fill).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");
    let (result, is_error) = call(&server, &session, "terminal", json!({ "command": "ls" })).await;
    assert!(is_error && result.to_string().contains("until there is room"), "{result}");
    let remove =
        json!({ "patch": "*** Begin Patch\n*** Delete File: holes\n*** Delete File: big\n*** End Patch" });
    let (result, is_error) = call(&server, &session, "patch", remove).await;
    assert!(!is_error, "{result}");
    let (result, is_error) = call(&server, &session, "terminal", json!({ "command": "ls" })).await;
    assert!(!is_error, "{result}");
}

#[tokio::test]
async fn short_commands_scripts_and_background_commands_are_told_too() {
    let limits = WorkspaceLimits { max_bytes: 20 * MEGABYTE, total_max_bytes: None };
    let (server, agent, _setup) = start(limits).await;
    let session = server.client.session(&agent).await;
    let short = json!({ "command": "head -c 30000000 /dev/urandom > big" });
    let (result, is_error) = call(&server, &session, "terminal", short).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");

    let session = server.client.session(&agent).await;
    let code = "import time\nopen('big', 'wb').write(b'x' * 30000000)\ntime.sleep(250)";
    let (result, is_error) = call(&server, &session, "execute_code", json!({ "code": code })).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");

    let session = server.client.session(&agent).await;
    let command = "head -c 30000000 /dev/urandom > big; sleep 600";
    let start = json!({ "command": command, "background": true });
    let (started, _) = call(&server, &session, "terminal", start).await;
    let wait = json!({ "action": "wait", "process_id": started["process_id"], "timeout": 60 });
    let (ended, _) = within("the command's end", call(&server, &session, "process", wait)).await;
    assert!(ended["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{ended}");
}

#[tokio::test]
async fn neither_removed_files_nor_closed_directories_hide_what_a_command_writes() {
    let limits = WorkspaceLimits { max_bytes: 20 * MEGABYTE, total_max_bytes: None };
    let (server, agent, _setup) = start(limits).await;
    for hide in [
        "exec 9> file; rm file; head -c 30000000 /dev/urandom >&9; sleep 600",
        "mkdir d; exec 9> d/file; chmod 000 d; head -c 30000000 /dev/urandom >&9; sleep 600",
        "exec 9> file; chmod 000 .; head -c 30000000 /dev/urandom >&9; sleep 600",
    ] {
        let session = server.client.session(&agent).await;
        let (result, is_error) = call(&server, &session, "terminal", json!({ "command": hide })).await;
        assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");
    }
}

#[tokio::test]
async fn all_workspaces_together_have_a_limit_and_sparse_files_take_no_room() {
    let limits = WorkspaceLimits { max_bytes: 1 << 40, total_max_bytes: Some(20 * MEGABYTE) };
    let (server, agent, _setup) = start(limits).await;
    let one = server.client.session(&agent).await;
    let sparse = "open('sparse', 'wb').truncate(100000000)";
    let (result, is_error) = call(&server, &one, "execute_code", json!({ "code": sparse })).await;
    assert!(!is_error, "{result}");
    let linked = json!({ "command": "head -c 12000000 /dev/urandom > a; ln a b; ln a c" });
    let (result, is_error) = call(&server, &one, "terminal", linked).await;
    assert!(!is_error, "{result}");
    let two = server.client.session(&agent).await;
    let fill = json!({ "command": "head -c 12000000 /dev/urandom > big; sleep 600" });
    let (result, is_error) = call(&server, &two, "terminal", fill).await;
    let reason = result["error"].as_str().unwrap();
    assert!(is_error && reason.contains("workspaces.total_max_bytes allows 20971520"), "{result}");
    assert!(!reason.replace("20971520", "").contains(|letter: char| letter.is_ascii_digit()), "{reason}");
    let write = json!({ "path": "more", "content": "x" });
    let (result, is_error) = call(&server, &one, "write_file", write).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.total_max_bytes"), "{result}");
}

#[tokio::test]
async fn a_command_that_one_limit_ended_counts_for_the_other() {
    let limits = WorkspaceLimits { max_bytes: 10 * MEGABYTE, total_max_bytes: Some(20 * MEGABYTE) };
    let (server, agent, _setup) = start(limits).await;
    let (one, two) = (server.client.session(&agent).await, server.client.session(&agent).await);
    let write = json!({ "path": "file", "content": "x" });
    let (result, is_error) = call(&server, &two, "write_file", write.clone()).await;
    assert!(!is_error, "{result}");
    let fill = json!({ "command": "head -c 30000000 /dev/urandom > big; sleep 600" });
    let (result, _) = call(&server, &one, "terminal", fill).await;
    assert!(result["error"].as_str().unwrap().contains("workspaces.max_bytes"), "{result}");
    let (result, is_error) = call(&server, &two, "write_file", write).await;
    assert!(is_error && result["error"].as_str().unwrap().contains("workspaces.total_max_bytes"), "{result}");
}
