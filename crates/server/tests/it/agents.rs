//! Agents: versions, preconditions, archives.

use petasos_testkit::{Reply, TestServer};
use serde_json::{Value, json};

#[tokio::test]
async fn an_update_makes_a_version_and_sessions_stay_with_theirs() {
    let server = TestServer::start().await;
    let client = &server.client;
    let body = json!({
        "name": "Acme", "model": "demo/echo", "instructions": "Help.",
        "mcpServers": [{ "type": "url", "name": "media", "url": "https://host/mcp" }],
        "tools": [
            { "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": "always_allow" } },
              "configs": [{ "name": "shell", "permissionPolicy": { "type": "always_ask" } }] },
            { "type": "mcp_toolset", "mcpServerName": "media" },
            { "type": "custom_tool", "name": "check_order_status" },
        ],
        "skills": [{ "name": "draw", "source": "inline", "content": "text" }],
        "metadata": { "area": "media", "tier": 1 },
    });
    let created = client.post("/v1/agents", body).await.expect(201);
    assert_eq!(created["version"], 1);
    assert!(created["id"].as_str().unwrap().starts_with("agent_"));
    assert_eq!(created["archivedAt"], Value::Null);
    let agent = created["id"].as_str().unwrap();
    let path = format!("/v1/agents/{agent}");
    let old_session = client.session(agent).await;

    let same = client.patch(&path, json!({ "name": "Acme" })).await.expect(200);
    assert_eq!(same["version"], 1, "nothing changed, so there is no new version");
    let next = client
        .patch(&path, json!({ "instructions": "Be brief.", "metadata": { "tier": null } }))
        .await
        .expect(200);
    assert_eq!((&next["version"], &next["instructions"]), (&json!(2), &json!("Be brief.")));
    assert_eq!(next["metadata"], json!({ "area": "media" }));
    assert_eq!(next["tools"], created["tools"]);

    let conflict =
        client.patch(&path, json!({ "name": "X", "version": 1 })).await.expect_error(409, "version_conflict");
    assert_eq!(conflict["version"], 2);
    client.patch(&path, json!({ "name": "X", "version": 2 })).await.expect(200);

    assert_eq!(client.get(&path).await.expect(200)["version"], 3);
    assert_eq!(client.get(&format!("{path}?version=1")).await.expect(200)["instructions"], "Help.");
    client.get(&format!("{path}?version=9")).await.expect_error(404, "not_found");
    let versions = client.get(&format!("{path}/versions?limit=2")).await.expect(200);
    let numbers: Vec<_> =
        versions["data"].as_array().unwrap().iter().map(|agent| &agent["version"]).collect();
    assert_eq!(numbers, [3, 2]);
    let cursor = versions["nextCursor"].as_str().unwrap();
    let rest = client.get(&format!("{path}/versions?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((&rest["data"][0]["version"], &rest["nextCursor"]), (&json!(1), &Value::Null));

    let old = client.get(&format!("/v1/sessions/{old_session}")).await.expect(200);
    assert_eq!(old["agentVersion"], 1);
    let new = client.session(agent).await;
    assert_eq!(client.get(&format!("/v1/sessions/{new}")).await.expect(200)["agentVersion"], 3);
    let named = client.post(&format!("{path}/sessions"), json!({ "agentVersion": 2 })).await.expect(201);
    assert_eq!(named["agentVersion"], 2);
}

#[tokio::test]
async fn an_archived_agent_takes_no_new_sessions() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let session = server.client.session(&agent).await;
    let archived = server.client.post(&format!("/v1/agents/{agent}/archive"), json!({})).await.expect(200);
    assert!(archived["archivedAt"].is_string());
    let refused = server.client.post(&format!("/v1/agents/{agent}/sessions"), json!({})).await;
    refused.expect_error(409, "agent_archived");
    assert_eq!(server.client.get("/v1/agents").await.expect(200)["data"], json!([]));
    server.client.message(&session, "still there?").await.expect(200);
}

#[tokio::test]
async fn agents_are_listed_newest_first_over_pages() {
    let server = TestServer::start().await;
    let mut made = Vec::new();
    for _ in 0..5 {
        made.push(server.agent_with(json!({})).await);
    }
    let first = server.client.get("/v1/agents?limit=3").await.expect(200);
    server.agent_with(json!({})).await;
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = server.client.get(&format!("/v1/agents?limit=3&cursor={cursor}")).await.expect(200);
    let pages = [&first, &second];
    let listed: Vec<_> = pages
        .iter()
        .flat_map(|page| page["data"].as_array().unwrap())
        .map(|agent| agent["id"].as_str().unwrap())
        .collect();
    made.reverse();
    assert_eq!(listed, made);
    assert_eq!(second["nextCursor"], Value::Null);
}

#[tokio::test]
async fn fields_that_may_be_left_out_may_be_null() {
    let server = TestServer::start().await;
    let definition =
        json!({ "name": "A", "model": "a/b", "instructions": null, "tools": null, "metadata": null });
    let made = server.client.post("/v1/agents", definition).await.expect(201);
    assert_eq!(made["instructions"], "");
    assert_eq!(made["tools"], json!([{ "type": "agent_toolset" }]));
}

#[tokio::test]
async fn a_tool_that_is_not_enabled_is_not_there() {
    let server = TestServer::start().await;
    let toolset = json!({
        "type": "agent_toolset",
        "default_config": { "permission_policy": { "type": "always_allow" } },
        "configs": [{ "name": "shell", "enabled": false }],
    });
    let agent = server.agent_with(json!({ "tools": [toolset] })).await;
    let shown = server.client.get(&format!("/v1/agents/{agent}")).await.expect(200);
    assert_eq!(shown["tools"][0]["defaultConfig"]["permissionPolicy"]["type"], "always_allow");
    assert_eq!(shown["tools"][0]["configs"], json!([{ "name": "shell", "enabled": false }]));
    let session = server.client.session(&agent).await;
    let call = Reply::tool_call("terminal", json!({ "command": "ls" }));
    server.model.script([call, Reply::text("I see.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert!(result.text().starts_with("There is no tool terminal."), "{}", result.text());
    let offered = server.model.requests()[0].body["tools"].to_string();
    assert!(offered.contains("write_file") && !offered.contains("\"terminal\""), "{offered}");
}

#[tokio::test]
async fn bad_definitions_name_the_field() {
    let server = TestServer::start().await;
    for (body, field) in [
        (json!({ "model": "demo/echo" }), "name"),
        (json!(["A", "demo/echo"]), "body"),
        (
            json!({ "name": "A", "model": "a/b", "tools": [{ "type": "agent_toolset", "colour": "red" }] }),
            "tools[0].colour",
        ),
        (
            json!({ "name": "A", "model": "a/b",
                "tools": [{ "type": "agent_toolset", "configs": [{ "name": "terminal", "disabled": true }] }] }),
            "tools[0].configs[0].disabled",
        ),
        (json!({ "name": "A", "model": "demo/echo", "tools": {} }), "tools"),
        (json!({ "name": "", "model": "demo/echo" }), "name"),
        (json!({ "name": "A", "model": "echo" }), "model"),
        (
            json!({ "name": "A", "model": "a/b", "tools": [{ "type": "mcp_toolset", "mcpServerName": "x" }] }),
            "tools[0].mcpServerName",
        ),
        (
            json!({ "name": "A", "model": "a/b", "tools": [{ "type": "custom_tool", "name": "a b" }] }),
            "tools[0].name",
        ),
    ] {
        let problem = server.client.post("/v1/agents", body).await.expect_error(400, "validation_error");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let agent = server.agent_with(json!({})).await;
    let path = format!("/v1/agents/{agent}");
    let problem =
        server.client.patch(&path, json!({ "modle": "a/b" })).await.expect_error(400, "validation_error");
    assert_eq!(problem["field"], "modle");
    server.client.patch(&path, json!({ "version": "one" })).await.expect_error(400, "validation_error");
    server.client.get(&format!("{path}?version=one")).await.expect_error(400, "validation_error");
    assert_eq!(server.client.get(&path).await.expect(200)["version"], 1);
}
