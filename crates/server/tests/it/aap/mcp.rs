//! Tools of MCP servers in the protocol.

use std::time::{Duration, Instant};

use petasos_testkit::{Reply, TestServer};
use petasos_tools::mcp::Settings;
use serde_json::{Value, json};

use super::{App, says};
use crate::mcp::{program, settings, start};

/// An application whose agent has the built-in tools and those of this MCP server.
async fn app(server: TestServer, name: &str) -> App {
    let tools = json!([{ "type": "agent_toolset" }, { "type": "mcp_toolset", "mcpServerName": name }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    App { server, agent }
}

async fn tools_in_meta(app: &App) -> Vec<Value> {
    let meta = app.server.client.get("/aap/meta").await.expect(200);
    meta["agents"][0]["tools"].as_array().unwrap().clone()
}

#[tokio::test]
async fn meta_lists_the_tools_of_servers() {
    let app = app(start([("py", program(&[]))], settings(), &[]).await, "py").await;
    let tools = tools_in_meta(&app).await;
    let echo = tools.iter().find(|tool| tool["name"] == "mcp_py_echo").expect("the tool of the server");
    assert_eq!(echo["description"], "Says it again.");
    assert_eq!(echo["parameters"]["properties"]["text"]["type"], "string");
    assert!(tools.iter().any(|tool| tool["name"] == "todo"));
}

#[tokio::test]
async fn trust_decides_about_tools_of_servers_both_ways() {
    let app = app(start([("py", program(&[]))], settings(), &[]).await, "py").await;
    for (tool, trust, stop) in
        [("write", true, "end_turn"), ("write", false, "tool_use"), ("echo", false, "tool_use")]
    {
        let name = format!("mcp_py_{tool}");
        let chosen = json!({ "tools": [{ "name": name, "trust": trust }] });
        let session = app.session_with(chosen.clone(), json!({})).await;
        assert_eq!(app.info(&session).await["agent"]["tools"], chosen["tools"]);
        app.server.model.script([Reply::tool_call(&name, json!({}))]);
        if trust {
            app.server.model.script([Reply::text("Done.")]);
        }
        let answer = app.turn(&session, says("go")).await;
        assert_eq!(answer["stopReason"], stop, "{tool} {trust}: {answer}");
        let offered = app.server.model.requests().last().unwrap().body["tools"].clone();
        assert_eq!(offered.as_array().unwrap().len(), 1, "{offered}");
    }
    let unknown = json!({ "agent": { "name": app.agent, "tools": [{ "name": "mcp_py_nothing" }] } });
    let refused = app.post_session(unknown).await;
    assert_eq!(refused.status, 400);
    assert!(refused.body["error"].as_str().unwrap().contains("mcp_py_echo"), "{}", refused.body);
}

#[tokio::test]
async fn a_silent_server_holds_nothing_up() {
    let short = Settings { wait_time: Duration::from_millis(300), ..settings() };
    let app = app(start([("silent", program(&["hang"]))], short, &[]).await, "silent").await;
    let began = Instant::now();
    let tools = tools_in_meta(&app).await;
    assert!(tools.iter().any(|tool| tool["name"] == "todo"), "{tools:?}");
    // What it has is not known, so its tools are taken on trust; those of others are not.
    let session =
        app.session_with(json!({ "tools": [{ "name": "mcp_silent_echo", "trust": true }] }), json!({})).await;
    let wrong = json!({ "agent": { "name": app.agent, "tools": [{ "name": "mcp_other_echo" }] } });
    assert_eq!(app.post_session(wrong).await.status, 400);
    app.server
        .model
        .script([Reply::tool_call("mcp_silent_echo", json!({})), Reply::text("Without it, then.")]);
    assert_eq!(app.turn(&session, says("go")).await["stopReason"], "end_turn");
    assert!(began.elapsed() < settings().connect_time / 2, "{:?}", began.elapsed());
}
