//! Fields of bodies that mean nothing: refused by name, or ignored and named.

use petasos_net::Method;
use petasos_server::UnknownFields;
use petasos_testkit::{Answer, Setup, TestServer};
use serde_json::{Value, json};

async fn ignoring() -> TestServer {
    TestServer::start_with(Setup { unknown_fields: UnknownFields::Ignore, ..Setup::default() }).await
}

fn agent(more: Value) -> Value {
    let mut agent = json!({ "name": "A", "model": "openai/scripted" });
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

/// Requests that have one field too many, with where it is and which status they have without it.
async fn requests(server: &TestServer) -> Vec<(Method, String, Value, &'static str, u16)> {
    let agent_id = server.agent_with(json!({})).await;
    let session = server.client.session(&agent_id).await;
    let skill = json!([{ "name": "s", "source": "inline", "content": "---\nname: s\ndescription: d\n---\nx", "colour": 1 }]);
    let servers = json!([{ "type": "url", "name": "m", "url": "https://host.example/mcp", "colour": 1 }]);
    let policy = json!([{ "type": "agent_toolset",
        "configs": [{ "name": "todo", "permissionPolicy": { "type": "always_ask", "colour": 1 } }] }]);
    let of_config = json!([{ "type": "agent_toolset", "configs": [{ "name": "todo", "colour": 1 }] }]);
    let event =
        json!({ "type": "user.message", "content": [{ "type": "text", "text": "hello", "colour": 1 }] });
    let routine = json!({ "agent": { "model": "openai/scripted", "colour": 1 } });
    let scheduled = json!({ "agent": agent_id, "schedule": { "cron": "0 0 1 1 *", "colour": 1 } });
    let steer = json!({ "type": "user.steer", "message": "x", "colour": 1 });
    let memories = format!("/v1/agents/{agent_id}/memories?userId=ada");
    vec![
        (Method::Post, "/v1/agents".into(), agent(json!({ "nmae": "x" })), "nmae", 201),
        (
            Method::Post,
            "/v1/agents".into(),
            agent(json!({ "tools": of_config })),
            "tools[0].configs[0].colour",
            201,
        ),
        (
            Method::Post,
            "/v1/agents".into(),
            agent(json!({ "tools": policy })),
            "tools[0].configs[0].permissionPolicy.colour",
            201,
        ),
        (
            Method::Post,
            "/v1/agents".into(),
            agent(json!({ "mcpServers": servers })),
            "mcpServers[0].colour",
            201,
        ),
        (Method::Post, "/v1/agents".into(), agent(json!({ "skills": skill })), "skills[0].colour", 201),
        (
            Method::Patch,
            format!("/v1/agents/{agent_id}"),
            json!({ "mcpServers": servers }),
            "mcpServers[0].colour",
            200,
        ),
        (Method::Patch, format!("/v1/agents/{agent_id}"), json!({ "colour": 1 }), "colour", 200),
        (
            Method::Post,
            format!("/v1/agents/{agent_id}/sessions"),
            json!({ "user_id": "ada" }),
            "user_id",
            201,
        ),
        (Method::Patch, format!("/v1/sessions/{session}"), json!({ "colour": 1 }), "colour", 200),
        (
            Method::Post,
            format!("/v1/sessions/{session}/events"),
            json!({ "events": [steer] }),
            "events[0].colour",
            200,
        ),
        (Method::Post, format!("/v1/sessions/{session}/events"), steer, "colour", 200),
        (
            Method::Post,
            format!("/v1/sessions/{session}/events"),
            json!({ "events": [event] }),
            "events[0].content[0].colour",
            200,
        ),
        (Method::Post, memories, json!({ "content": "Likes hats.", "colour": 1 }), "colour", 201),
        (
            Method::Post,
            "/v1/keys".into(),
            json!({ "name": "k", "scopes": ["sessions:read"], "colour": 1 }),
            "colour",
            201,
        ),
        (
            Method::Post,
            "/conversation/sessions".into(),
            json!({ "agent_id": agent_id, "colour": 1 }),
            "colour",
            201,
        ),
        (
            Method::Patch,
            format!("/conversation/sessions/{session}"),
            json!({ "metadata": { "set": {}, "add": {} } }),
            "metadata.add",
            200,
        ),
        (
            Method::Post,
            format!("/conversation/sessions/{session}/events"),
            json!({ "kind": "human_agent_message", "text": "x", "author": "Ann", "colour": 1 }),
            "colour",
            201,
        ),
        (
            Method::Post,
            "/conversation/customers".into(),
            json!({ "id": "ada", "name": "Ada", "colour": 1 }),
            "colour",
            201,
        ),
        (Method::Put, "/routines/one".into(), routine, "agent.colour", 201),
        (Method::Post, format!("/v1/sessions/{session}/finalize"), json!({ "colour": 1 }), "colour", 200),
        (
            Method::Post,
            format!("/v1/sessions/{session}/archive"),
            json!({ "reason": { "a": 1 } }),
            "reason",
            200,
        ),
        (Method::Delete, format!("/conversation/sessions/{session}"), json!({ "force": true }), "force", 204),
        (Method::Put, "/routines/two".into(), scheduled, "schedule.colour", 201),
        (Method::Put, "/routines/three".into(), json!({ "agent": agent_id, "colour": 1 }), "colour", 201),
    ]
}

async fn send(server: &TestServer, method: Method, path: &str, body: &Value) -> Answer {
    server.client.send(method, path, Some(body.to_string().into())).await
}

#[tokio::test]
async fn they_are_refused_by_name_on_every_surface_of_ours() {
    let server = TestServer::start().await;
    for (method, path, body, field, _) in requests(&server).await {
        let answer = send(&server, method, &path, &body).await;
        assert!(answer.ignored.is_none());
        let named = if path.starts_with("/v1/") {
            answer.expect_error(400, "validation_error")["field"].clone()
        } else {
            assert_eq!(
                (answer.status, &answer.body["code"]),
                (422, &json!("invalid_request")),
                "{path}: {}",
                answer.body
            );
            answer.body["details"]["field"].clone()
        };
        assert_eq!(named, field, "{path}");
    }
    let answer = server.client.post("/v1/agents", agent(json!({ "instrutions": "x" }))).await;
    let message = answer.expect_error(400, "validation_error")["message"].clone();
    assert!(message.as_str().unwrap().contains("instructions"), "{message}");
}

#[tokio::test]
async fn bodies_that_nobody_reads_may_be_there_without_fields() {
    let server = TestServer::start().await;
    let session = server.session().await;
    for body in ["", "{}", "null", "[]", "no JSON"] {
        let path = format!("/v1/sessions/{session}/finalize");
        let answer = server.client.send(Method::Post, &path, Some(body.to_owned().into())).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.body);
    }
}

#[tokio::test]
async fn blocks_of_an_answer_to_a_conversation_are_checked() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/conversation/sessions/{session}/actions/any");
    let block = json!({ "type": "text", "text": "found", "colour": 1 });
    let answer = server.client.post(&path, json!({ "content": [block] })).await;
    assert_eq!((answer.status, &answer.body["details"]["field"]), (422, &json!("content[0].colour")));
    let answer = server.client.post(&path, json!({ "content": "found" })).await;
    assert_eq!(answer.status, 409, "{}", answer.body);
}

#[tokio::test]
async fn a_server_that_ignores_them_takes_the_rest_and_names_them() {
    let server = ignoring().await;
    for (method, path, body, field, status) in requests(&server).await {
        let answer = send(&server, method, &path, &body).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let named = answer.ignored.unwrap_or_default();
        assert!(named.split(", ").any(|name| name == field), "{path}: {named}");
    }
    let plain = server.client.post("/v1/agents", agent(json!({}))).await;
    assert_eq!((plain.status, plain.ignored), (201, None));
    // What is wrong in another way is still wrong.
    server
        .client
        .post("/v1/agents", json!({ "name": "A", "colour": 1 }))
        .await
        .expect_error(400, "validation_error");
    let odd = server.client.post("/v1/agents", agent(json!({ "é,\n": 1, "b": 2 }))).await;
    assert_eq!((odd.status, odd.ignored.as_deref()), (201, Some("%C3%A9%2C%0A, b")));
}

#[tokio::test]
async fn free_form_values_stay_free_and_other_protocols_tolerant() {
    let server = TestServer::start().await;
    let free = json!({ "a": { "b": [{ "c": 1 }] } });
    let tools =
        json!([{ "type": "custom_tool", "name": "t", "input_schema": { "type": "object", "x-own": free } }]);
    let made = server
        .client
        .post("/v1/agents", agent(json!({ "metadata": free, "tools": tools })))
        .await
        .expect(201);
    let id = made["id"].as_str().unwrap();
    let fields = json!({ "metadata": free });
    let session = server.client.post(&format!("/v1/agents/{id}/sessions"), fields.clone()).await.expect(201);
    let path = format!("/v1/sessions/{}", session["id"].as_str().unwrap());
    server.client.patch(&path, json!({ "metadata": { "d": free } })).await.expect(200);
    // An agent may be sent back as it was shown, and so may a routine.
    server.client.patch(&format!("/v1/agents/{id}"), made.clone()).await.expect(200);
    let routine = json!({ "agent": id, "input_schema": { "type": "object", "x-own": free }, "schedule":
        { "cron": "0 0 1 1 *", "input": free } });
    let routine = server.client.put("/routines/free", routine).await.expect(201);
    server.client.put("/routines/free", routine).await.expect(200);
    let customer = json!({ "name": "Ada", "metadata": free, "variables": free });
    server.client.post("/conversation/customers", customer).await.expect(201);
    let parlant = json!({ "agent_id": id, "colour": 1, "metadata": {} });
    let opened = server.client.post("/parlant/sessions", parlant).await.expect(201);
    let path = format!("/parlant/sessions/{}/events", opened["id"].as_str().unwrap());
    let event = json!({ "kind": "custom", "source": "customer_ui", "data": free, "colour": 1 });
    server.client.post(&path, event).await.expect(201);
    let aap = json!({ "agent": { "name": id, "colour": 1 }, "messages": [], "colour": 1 });
    let aap = server.client.post("/aap/sessions", aap).await;
    assert!(!aap.body.to_string().contains("known field"), "{}", aap.body);
}

#[tokio::test]
async fn who_may_not_write_is_told_that_first() {
    let server = TestServer::start().await;
    let stranger = server.client_with("pk_nobody");
    assert_eq!(stranger.post("/v1/agents", agent(json!({ "colour": 1 }))).await.status, 401);
    let reader = json!({ "name": "reader", "scopes": ["sessions:read"] });
    let key = server.client.post("/v1/keys", reader).await.expect(201);
    let reader = server.client_with(key["key"].as_str().unwrap());
    assert_eq!(reader.post("/v1/agents", agent(json!({ "colour": 1 }))).await.status, 403);
    let archive = format!("/v1/sessions/{}/archive", server.session().await);
    assert_eq!(reader.post(&archive, json!({ "colour": 1 })).await.status, 403);
}
