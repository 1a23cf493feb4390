//! Keys, scopes and tenants.

use petasos_net::Method;
use petasos_testkit::{Gate, Reply, TestServer};
use serde_json::json;

#[tokio::test]
async fn without_a_valid_key_nothing_else_is_looked_at() {
    let server = TestServer::start().await;
    assert_eq!(server.client_with("").get("/health").await.expect(200)["status"], "ok");
    let paths = [
        "/v1/agents",
        "/v1/sessions",
        "/v1/sessions/session_x",
        "/v1/keys",
        "/no/such/path",
        "/v1/sessions?limit=0",
    ];
    for key in ["", "pk_wrong"] {
        let client = server.client_with(key);
        for path in paths {
            client.get(path).await.expect_error(401, "unauthorized");
            client.send(Method::Post, path, Some("{not json".into())).await.expect_error(401, "unauthorized");
        }
        client.get("/v1/sessions/session_x/events/stream").await.expect_error(401, "unauthorized");
    }
    let basic = server.client_with("").with_header("authorization", "Basic abc");
    basic.get("/v1/agents").await.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say_until_it_is_revoked() {
    let server = TestServer::start().await;
    let body = json!({ "name": "reader", "scopes": ["sessions:read", "agents:read"] });
    let made = server.client.post("/v1/keys", body).await.expect(201);
    let key = made["key"].as_str().unwrap();
    let reader = server.client_with(key);
    reader.get("/v1/sessions").await.expect(200);
    let problem = reader
        .post("/v1/agents", json!({ "name": "A", "model": "demo/x" }))
        .await
        .expect_error(403, "forbidden");
    assert_eq!(problem["scope"], "agents:write");
    reader.get("/v1/keys").await.expect_error(403, "forbidden");
    let session = server.session().await;
    reader.message(&session, "hello").await.expect_error(403, "forbidden");

    let listed = server.client.get("/v1/keys").await.expect(200);
    assert_eq!(listed["data"][0]["name"], "reader");
    assert!(!listed.to_string().contains(key), "a key is shown once");
    let id = made["id"].as_str().unwrap();
    server.client.delete(&format!("/v1/keys/{id}")).await.expect(200);
    reader.get("/v1/sessions").await.expect_error(401, "unauthorized");
    server.client.delete("/v1/keys/key_nobody").await.expect_error(404, "not_found");
    server
        .client
        .post("/v1/keys", json!({ "scopes": ["everything"] }))
        .await
        .expect_error(400, "validation_error");
}

#[tokio::test]
async fn what_is_still_being_answered_ends_with_its_key() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let made = server.client.post("/v1/keys", json!({})).await.expect(201);
    let client = server.client_with(made["key"].as_str().unwrap());
    let gate = Gate::new();
    server.model.script([Reply::text("one ").gate(&gate).and_text("two")]);
    let turn = json!({ "stream": "delta", "messages": [{ "role": "user", "content": "go" }] });
    let events = |surface: &str| format!("/{surface}/sessions/{session}/events");
    let mut streams = vec![
        client.stream(&session, "").await,
        client.get_stream(&format!("{}?sse=true", events("conversation"))).await,
        client.get_stream(&format!("{}?sse=true", events("parlant"))).await,
        client.post_stream(&format!("/aap/sessions/{session}/turns"), turn).await,
    ];
    let mut others = server.client.stream(&session, "").await;
    gate.reached().await;
    let waits = format!("{}?min_offset=1000&wait_for_data=60", events("conversation"));
    let (answer, ()) = tokio::join!(client.get(&waits), async {
        // One that is let in after the wait has begun has seen it begin.
        client.get("/v1/sessions").await.expect(200);
        server.client.delete(&format!("/v1/keys/{}", made["id"].as_str().unwrap())).await.expect(200);
    });
    assert_eq!(answer.expect(401)["code"], "unauthorized");
    for stream in &mut streams {
        while let Some(frame) = stream.next().await {
            assert!(!frame.data.to_string().contains("two"), "{frame:?}");
        }
    }
    gate.open();
    others.until_idle().await;
}

#[tokio::test]
async fn tenants_do_not_exist_for_each_other() {
    let server = TestServer::start().await;
    let key = server.client.post("/v1/keys", json!({ "tenant": "globex" })).await.expect(201);
    let globex = server.client_with(key["key"].as_str().unwrap());
    let session = server.session().await;
    let agent = server.agent_with(json!({})).await;
    for path in [
        format!("/v1/agents/{agent}"),
        format!("/v1/agents/{agent}/versions"),
        format!("/v1/sessions/{session}"),
        format!("/v1/sessions/{session}/events"),
        format!("/v1/sessions/{session}/events/stream"),
    ] {
        globex.get(&path).await.expect_error(404, "not_found");
    }
    globex.message(&session, "hi").await.expect_error(404, "not_found");
    globex.delete(&format!("/v1/sessions/{session}")).await.expect_error(404, "not_found");
    globex.post(&format!("/v1/agents/{agent}/sessions"), json!({})).await.expect_error(404, "not_found");
    globex.patch(&format!("/v1/agents/{agent}"), json!({ "name": "X" })).await.expect_error(404, "not_found");
    assert_eq!(globex.get("/v1/agents").await.expect(200)["data"], json!([]));
    assert_eq!(globex.get("/v1/sessions").await.expect(200)["data"], json!([]));

    let own = globex.agent(json!({ "name": "Ours", "model": "demo/fast" })).await;
    globex.session(&own).await;
    let admin_there = server.client.with_header("x-petasos-tenant", "globex");
    assert_eq!(admin_there.get("/v1/agents").await.expect(200)["data"][0]["id"], own.as_str());
    server.client.get(&format!("/v1/agents/{own}")).await.expect_error(404, "not_found");
    // Only administrators choose a tenant.
    let curious = globex.with_header("x-petasos-tenant", "default");
    curious.get(&format!("/v1/agents/{agent}")).await.expect_error(404, "not_found");
}

#[tokio::test]
async fn a_key_has_a_name_and_not_a_novel() {
    let server = TestServer::start().await;
    let named = |length| json!({ "name": "ä".repeat(length) });
    server.client.post("/v1/keys", named(256)).await.expect(201);
    let problem = server.client.post("/v1/keys", named(257)).await.expect_error(400, "validation_error");
    assert_eq!(problem["field"], "name", "{problem}");
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let server = TestServer::start().await;
    let made = server.client.get("/v1/agents").await.request_id.unwrap();
    assert!(made.starts_with("req_"));
    let given = server.client.with_header("x-request-id", "mine-1").get("/v1/nothing").await;
    assert_eq!(given.request_id.as_deref(), Some("mine-1"));
    given.expect_error(404, "not_found");
}
