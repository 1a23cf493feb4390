//! Tools of MCP servers.

use std::collections::BTreeMap;
use std::time::Duration;

use petasos_net::{Egress, Guard, Options};
use petasos_sandbox::Supervisor;
use petasos_testkit::{Frame, McpAnswers, McpServer, Reply, Setup, TestServer, within};
use petasos_tools::mcp::{McpServers, Program, Reach, ServerDefinition, Settings, Tenants};
use secrecy::SecretString;
use serde_json::{Value, json};

pub(crate) fn settings() -> Settings {
    Settings {
        connect_time: Duration::from_secs(50),
        call_time: Duration::from_secs(50),
        ..Settings::default()
    }
}

/// The misbehaving server as a program, with these faults.
pub(crate) fn program(faults: &[&str]) -> ServerDefinition {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_server.py");
    let args = std::iter::once(script).chain(faults.iter().copied()).map(str::to_owned).collect();
    let variable = |name: &str, value: String| (name.to_owned(), SecretString::from(value));
    let env = BTreeMap::from([variable("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    let directory = std::env::temp_dir();
    let program = Program { command: "/usr/bin/python3".to_owned(), args, env, directory };
    ServerDefinition {
        reach: Reach::Program(program),
        tenants: Tenants::Only(vec!["default".parse().unwrap()]),
    }
}

fn http(url: &str, authorization: &str) -> ServerDefinition {
    let headers =
        BTreeMap::from([("Authorization".to_owned(), SecretString::from(authorization.to_owned()))]);
    ServerDefinition { reach: Reach::Http { url: url.to_owned(), headers }, tenants: Tenants::All }
}

/// A server of ours that has these MCP servers.
pub(crate) async fn start<const N: usize>(
    configured: [(&str, ServerDefinition); N],
    settings: Settings,
    allow: &[&str],
) -> TestServer {
    TestServer::start_with(setup(configured, settings, allow)).await
}

/// The parts of a server of ours that has these MCP servers.
pub(crate) fn setup<const N: usize>(
    configured: [(&str, ServerDefinition); N],
    settings: Settings,
    allow: &[&str],
) -> Setup {
    let configured = configured.into_iter().map(|(name, server)| (name.to_owned(), server)).collect();
    let allow = allow.iter().map(|text| text.parse().unwrap()).collect();
    let guard = Guard::new(Egress { allow, only_hosts: Vec::new() });
    let mcp = McpServers::new(configured, settings, Options::default(), guard, Supervisor::of_tests());
    let mut setup = Setup::default();
    setup.tools = setup.tools.with_mcp(mcp);
    setup
}

/// A session whose agent has the toolset of this server, with these fields besides.
pub(crate) async fn session_with(server: &TestServer, name: &str, fields: Value) -> String {
    let mut toolset = json!({ "type": "mcp_toolset", "mcpServerName": name });
    for (field, value) in fields.as_object().unwrap() {
        toolset[field] = value.clone();
    }
    let agent = server.agent_with(json!({ "tools": [toolset] })).await;
    server.client.session(&agent).await
}

/// Has the model call a tool, and returns what happened.
pub(crate) async fn turn(server: &TestServer, session: &str, tool: &str, input: Value) -> Vec<Frame> {
    server.model.script([Reply::tool_call(tool, input), Reply::text("Done.")]);
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    stream.until_idle().await
}

/// The text of the call's result, and whether it failed.
pub(crate) fn result(frames: &[Frame]) -> (String, bool) {
    let frame = frames.iter().find(|frame| frame.event == "agent.mcp_tool_result").expect("a result");
    let payload = &frame.data["payload"];
    let text = payload["content"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap());
    (text.collect(), payload["is_error"] == true)
}

/// The tools that the model was told about in its last request.
pub(crate) fn offered(server: &TestServer) -> Vec<String> {
    let requests = server.model.requests();
    let tools = &requests.last().unwrap().body["tools"];
    let names = tools.as_array().into_iter().flatten().map(|tool| tool["function"]["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn a_tool_that_only_looks_runs_and_is_shown_as_one_of_a_server() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_echo", json!({ "text": "hello" })).await;
    let used = frames.iter().find(|frame| frame.event == "agent.mcp_tool_use").unwrap();
    let id = used.data["payload"]["id"].as_str().unwrap();
    assert!(id.starts_with("mcptoolu_"), "{id}");
    assert_eq!(used.data["payload"]["tool"], "mcp_py_echo");
    assert_eq!(result(&frames), ("hello".to_owned(), false));
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    assert!(offered(&server).contains(&"mcp_py_write".to_owned()));
    assert!(server.model.requests()[1].body["messages"].to_string().contains("hello"));
}

#[tokio::test]
async fn other_tools_ask_unless_a_policy_says_otherwise() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    let frames = turn(&server, &session, "mcp_py_write", json!({ "to": "disk" })).await;
    assert_eq!(frames.last().unwrap().stop(), Some("requires_action"));
    let action =
        server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)["pendingActions"][0].clone();
    assert_eq!((&action["type"], &action["tool"]), (&json!("tool_confirmation"), &json!("mcp_py_write")));
    let mut stream = server.client.stream(&session, "").await;
    let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    server.client.event(&session, allow).await.expect(200);
    assert_eq!(result(&stream.until_idle().await), ("written".to_owned(), false));

    let (always_allow, always_ask) = (json!({ "type": "always_allow" }), json!({ "type": "always_ask" }));
    let fields = json!({
        "defaultConfig": { "permissionPolicy": always_allow },
        "configs": [{ "name": "echo", "permissionPolicy": always_ask }],
    });
    let session = session_with(&server, "py", fields).await;
    let frames = turn(&server, &session, "mcp_py_write", json!({})).await;
    assert_eq!(result(&frames), ("written".to_owned(), false));
    let frames = turn(&server, &session, "mcp_py_echo", json!({})).await;
    assert_eq!(frames.last().unwrap().stop(), Some("requires_action"));
}

#[tokio::test]
async fn a_pending_call_survives_a_restart() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    turn(&server, &session, "mcp_py_write", json!({})).await;
    let server = server.restart().await;
    server.model.script([Reply::text("Done.")]);
    let action =
        server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)["pendingActions"][0].clone();
    let mut stream = server.client.stream(&session, "").await;
    let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": action["id"], "result": "allow" });
    server.client.event(&session, allow).await.expect(200);
    assert_eq!(result(&stream.until_idle().await), ("written".to_owned(), false));
}

#[tokio::test]
async fn servers_over_http_get_the_headers_of_the_configuration() {
    for answers in [McpAnswers::Json, McpAnswers::Events] {
        let remote = McpServer::start(answers).await;
        let server = start([("hub", http(&remote.url, "Bearer t0ken"))], settings(), &[]).await;
        let session = session_with(&server, "hub", json!({})).await;
        let frames = turn(&server, &session, "mcp_hub_echo", json!({ "text": "over HTTP" })).await;
        assert_eq!(result(&frames), ("over HTTP".to_owned(), false));
        let seen = remote.seen();
        assert!(seen.len() >= 4 && seen.iter().all(|(header, _)| header == "Bearer t0ken"), "{seen:?}");

        // An agent that names the same address by a name of its own has the same server.
        let servers = json!([{ "type": "url", "name": "mine", "url": remote.url }]);
        let tools = json!([{ "type": "mcp_toolset", "mcpServerName": "mine" }]);
        let agent = server.agent_with(json!({ "mcpServers": servers, "tools": tools })).await;
        let session = server.client.session(&agent).await;
        let frames = turn(&server, &session, "mcp_mine_echo", json!({ "text": "again" })).await;
        assert_eq!(result(&frames), ("again".to_owned(), false));
        let initialized =
            remote.seen().iter().filter(|(_, message)| message["method"] == "initialize").count();
        assert_eq!(initialized, 1);
    }
}

#[tokio::test]
async fn an_agent_reaches_private_addresses_only_if_the_operator_allows_it() {
    let remote = McpServer::start(McpAnswers::Json).await;
    let definition = json!({
        "name": "a", "model": "openai/scripted",
        "mcpServers": [{ "type": "url", "name": "mine", "url": remote.url }],
        "tools": [{ "type": "mcp_toolset", "mcpServerName": "mine" }],
    });
    let server = start([], settings(), &[]).await;
    let refused = server.client.post("/v1/agents", definition.clone()).await;
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body["message"].as_str().unwrap().contains("mcpServers[0].url"), "{}", refused.body);
    assert!(remote.seen().is_empty());

    let server = start([], settings(), &["127.0.0.1"]).await;
    let session = server.client.session(&server.client.agent(definition).await).await;
    let frames = turn(&server, &session, "mcp_mine_echo", json!({ "text": "near" })).await;
    assert_eq!(result(&frames), ("near".to_owned(), false));
}

#[tokio::test]
async fn long_output_is_kept_in_the_workspace() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let agent = server
        .agent_with(json!({ "tools": [
            { "type": "mcp_toolset", "mcpServerName": "py" },
            { "type": "agent_toolset" },
        ] }))
        .await;
    let session = server.client.session(&agent).await;
    let (text, is_error) = result(&turn(&server, &session, "mcp_py_long", json!({})).await);
    assert!(!is_error && text.len() < 40_000, "{} bytes", text.len());
    assert!(text.starts_with("line 0\n") && text.ends_with("line 19999\n"));
    let (_, path) = text.split_once("all of it is in ").expect("a path");
    let path = path.split(' ').next().unwrap();
    let frames =
        turn(&server, &session, "read_file", json!({ "path": path, "offset": 10_001, "limit": 1 })).await;
    let read = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert!(read.data["payload"].to_string().contains("line 10000"), "{}", read.data);
}

#[tokio::test]
async fn agents_name_servers_and_start_nothing() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let tools = |name: &str| json!([{ "type": "mcp_toolset", "mcpServerName": name }]);
    let definition = json!({ "name": "a", "model": "openai/scripted", "tools": tools("nobody") });
    let refused = server.client.post("/v1/agents", definition).await;
    assert!(refused.body["message"].as_str().unwrap().contains("nobody"), "{}", refused.body);
    assert_eq!(refused.status, 400);
    for own in [
        json!({ "type": "stdio", "name": "own", "command": "/bin/sh", "args": ["-c", "true"] }),
        json!({ "type": "command", "name": "own", "url": "/bin/sh" }),
        json!({ "name": "own", "command": "/bin/sh" }),
    ] {
        let definition =
            json!({ "name": "a", "model": "openai/scripted", "mcpServers": [own], "tools": tools("own") });
        assert_eq!(server.client.post("/v1/agents", definition).await.status, 400);
    }
    // What the operator has set up belongs to the tenants that it was set up for.
    let other = server.client.with_header("x-petasos-tenant", "other");
    let definition = json!({ "name": "a", "model": "openai/scripted", "tools": tools("py") });
    assert_eq!(other.post("/v1/agents", definition.clone()).await.status, 400);
    assert_eq!(server.client.post("/v1/agents", definition).await.status, 201);
}

#[tokio::test]
async fn a_changed_list_of_tools_is_seen_by_sessions_that_wake_later() {
    let server = start([("py", program(&[]))], settings(), &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    turn(&server, &session, "mcp_py_grow", json!({})).await;
    assert!(!offered(&server).contains(&"mcp_py_new".to_owned()));
    server.wait_until_asleep().await;
    within("the new tool", async {
        loop {
            turn(&server, &session, "mcp_py_echo", json!({})).await;
            if offered(&server).contains(&"mcp_py_new".to_owned()) {
                return;
            }
            server.wait_until_asleep().await;
        }
    })
    .await;
}

#[tokio::test]
async fn programs_end_when_nobody_uses_them_and_come_back() {
    let directory = std::env::temp_dir().join(format!("petasos-mcp-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mark = directory.join("ended");
    let fault = format!("ended={}", mark.display());
    let idle = Settings { idle_time: Duration::from_millis(50), ..settings() };
    let server = start([("py", program(&[&fault]))], idle, &[]).await;
    let session = session_with(&server, "py", json!({})).await;
    turn(&server, &session, "mcp_py_echo", json!({})).await;
    within("the end of the program", async {
        while !mark.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let frames = turn(&server, &session, "mcp_py_echo", json!({ "text": "back" })).await;
    assert_eq!(result(&frames), ("back".to_owned(), false));
    std::fs::remove_dir_all(&directory).unwrap();
}
