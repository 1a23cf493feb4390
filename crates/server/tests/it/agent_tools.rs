//! Which tools an agent has: those that it lists, the built-in ones if it lists none, and no tool for an empty list.

use petasos_net::Method;
use petasos_testkit::{Reply, TestServer};
use serde_json::{Value, json};

/// The names of the tools that the model is told about in a session with an agent.
async fn offered(server: &TestServer, agent: &str) -> Vec<String> {
    let session = server.client.session(agent).await;
    server.model.script([Reply::text("Hello.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hi").await.expect(200);
    stream.until_idle().await;
    let request = server.model.requests().pop().unwrap().body;
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn toolset(configs: Value) -> Value {
    json!({ "tools": [{ "type": "agent_toolset", "configs": configs }] })
}

#[tokio::test]
async fn an_empty_list_is_no_tool_and_leaving_it_out_is_the_built_in_ones() {
    let server = TestServer::start().await;
    let none = server.agent_with(json!({ "tools": [] })).await;
    assert_eq!(offered(&server, &none).await, Vec::<String>::new());
    let path = format!("/v1/agents/{none}");
    assert_eq!(server.client.get(&path).await.expect(200)["tools"], json!([]));
    // A change of something else does not bring them back, and sending the same back changes nothing.
    let renamed = server.client.patch(&path, json!({ "name": "Renamed" })).await.expect(200);
    assert_eq!((&renamed["version"], &renamed["tools"]), (&json!(2), &json!([])));
    let same = server.client.patch(&path, renamed.clone()).await.expect(200);
    assert_eq!(same["version"], 2);
    assert_eq!(offered(&server, &none).await, Vec::<String>::new());

    for fields in [json!({}), json!({ "tools": null })] {
        let usual = server.agent_with(fields).await;
        assert!(offered(&server, &usual).await.contains(&"terminal".to_owned()));
        let path = format!("/v1/agents/{usual}");
        let shown = server.client.get(&path).await.expect(200);
        assert_eq!(shown["tools"], json!([{ "type": "agent_toolset" }]), "what is shown means the same");
        assert_eq!(server.client.patch(&path, shown).await.expect(200)["version"], 1);
        server.client.patch(&path, json!({ "tools": [] })).await.expect(200);
        assert_eq!(offered(&server, &usual).await, Vec::<String>::new());
        server.client.patch(&path, json!({ "tools": null })).await.expect(200);
        assert!(offered(&server, &usual).await.contains(&"todo".to_owned()));
    }
}

#[tokio::test]
async fn a_model_without_tools_cannot_call_any() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({ "tools": [] })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Well.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert_eq!(result.data["payload"]["is_error"], true);
    assert!(result.text().contains("There is no tool todo"), "{}", result.text());
}

#[tokio::test]
async fn tools_of_a_restarted_server_are_what_they_were() {
    let server = TestServer::start().await;
    let none = server.agent_with(json!({ "tools": [] })).await;
    let usual = server.agent_with(json!({})).await;
    let server = server.restart().await;
    assert_eq!(offered(&server, &none).await, Vec::<String>::new());
    assert!(offered(&server, &usual).await.contains(&"terminal".to_owned()));
}

#[tokio::test]
async fn an_empty_list_of_an_earlier_release_is_the_built_in_tools() {
    let server = TestServer::start().await;
    let session = "session_00000000000000000000000000000001";
    let header = |tools: Value| {
        json!({ "format": "petasos.session", "version": 1, "title": null, "metadata": {}, "last_sequence": 0,
            "session": { "id": session, "tenant": "default", "agent_id": "old", "agent_version": 1, "user_id": null,
                "platform": "api", "created_at": "2026-01-01T00:00:00Z" },
            "agent": { "id": "old", "tenant": "default", "version": 1, "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z", "archived_at": null,
                "definition": { "name": "Old", "model": "openai/scripted", "instructions": "", "tools": tools,
                    "mcpServers": [], "skills": [], "metadata": {} } } })
    };
    // A tool that is not here, of a plugin for instance, is no reason not to take a session in.
    let unknown = json!([{ "type": "agent_toolset", "configs": [{ "name": "of_a_plugin" }] }]);
    let mut elsewhere = header(unknown);
    (elsewhere["agent"]["id"], elsewhere["session"]["agent_id"]) = ("elsewhere".into(), "elsewhere".into());
    elsewhere["session"]["id"] = "session_00000000000000000000000000000002".into();
    let body = elsewhere.to_string();
    server.client.send(Method::Post, "/v1/sessions/import", Some(body.into())).await.expect(201);
    let body = header(json!([])).to_string();
    server.client.send(Method::Post, "/v1/sessions/import", Some(body.into())).await.expect(201);
    assert!(offered(&server, "old").await.contains(&"terminal".to_owned()));
    let shown = server.client.get("/v1/agents/old").await.expect(200);
    assert_eq!(shown["tools"], json!([{ "type": "agent_toolset" }]));
}

#[tokio::test]
async fn an_export_says_whether_an_agent_has_no_tools() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let agent = here.agent_with(json!({ "tools": [] })).await;
    let session = here.client.session(&agent).await;
    let path = format!("{}/v1/sessions/{session}/export", here.url);
    let http = petasos_net::Client::new(&petasos_net::Options::default());
    let key = [("authorization", "Bearer pk_admin_key_of_tests")];
    let text =
        http.request(Method::Get, &path, &key, None).await.unwrap().text_bounded(1 << 20).await.unwrap();
    there.client.send(Method::Post, "/v1/sessions/import", Some(text.into())).await.expect(201);
    assert_eq!(offered(&there, &agent).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_name_that_no_tool_has_is_refused_with_the_nearest() {
    let server = TestServer::start().await;
    let create = async |fields: Value| {
        let mut body = json!({ "name": "A", "model": "openai/scripted" });
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        server.client.post("/v1/agents", body).await
    };
    for (wrong, nearest) in
        [("terminl", "terminal"), ("clarfy", "clarify"), ("Todo", "todo"), ("skill_veiw", "skill_view")]
    {
        let refused = create(toolset(json!([{ "name": "todo" }, { "name": wrong }]))).await;
        let body = refused.expect_error(400, "validation_error");
        assert_eq!(body["field"], "tools[0].configs[1].name");
        assert!(body["message"].as_str().unwrap().contains(nearest), "{body}");
    }
    let known =
        ["shell", "terminal", "clarify", "request_secret", "delegate_task", "memory", "session_search"];
    let configs: Vec<Value> = known.iter().map(|name| json!({ "name": name, "enabled": false })).collect();
    create(toolset(json!(configs))).await.expect(201);
    // Nobody here knows what the tools of a server are called, and an application's own tools are known by their entries.
    let others = json!({
        "mcpServers": [{ "type": "url", "name": "media", "url": "https://host.example/mcp" }],
        "tools": [
            { "type": "mcp_toolset", "mcpServerName": "media", "configs": [{ "name": "whatever", "enabled": false }] },
            { "type": "custom_tool", "name": "check_order" },
            { "type": "agent_toolset", "configs": [{ "name": "check_order" }, { "name": "mcp_media_draw" }] },
        ],
    });
    let agent = create(others).await.expect(201);
    let path = format!("/v1/agents/{}", agent["id"].as_str().unwrap());
    let refused = server.client.patch(&path, toolset(json!([{ "name": "read_fil" }]))).await;
    let body = refused.expect_error(400, "validation_error");
    assert!(body["message"].as_str().unwrap().contains("read_file"), "{body}");
    let routine = json!({ "agent": { "model": "openai/scripted", "tools": toolset(json!([{ "name": "tod" }]))["tools"] } });
    let refused = server.client.put("/routines/wrong", routine).await;
    assert_eq!((refused.status, &refused.body["code"]), (422, &json!("invalid_request")));
    assert_eq!(refused.body["details"]["field"], "agent.tools[0].configs[0].name");
}

#[tokio::test]
async fn agents_of_routines_follow_the_same_rule() {
    let server = TestServer::start().await;
    for (id, fields) in [("none", json!({ "tools": [] })), ("usual", json!({}))] {
        let mut agent = json!({ "model": "openai/scripted" });
        agent.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let put = server.client.put(&format!("/routines/{id}"), json!({ "agent": agent })).await.expect(201);
        assert_eq!(put["agent"], agent, "it is shown as it was put");
    }
    let server = server.restart().await;
    assert_eq!(offered(&server, "routine_none").await, Vec::<String>::new());
    assert!(offered(&server, "routine_usual").await.contains(&"terminal".to_owned()));
    assert_eq!(server.client.get("/routines/none").await.expect(200)["agent"]["tools"], json!([]));
}
