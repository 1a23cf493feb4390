//! Requests that make no sense: a clear error, nothing stored, and the session goes on.

use petasos_net::Method;
use petasos_testkit::client::message;
use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::{Value, json};

#[tokio::test]
async fn bad_events_name_the_field_and_store_nothing() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}/events");
    let text = |text: &str| json!({ "type": "text", "text": text });
    let with_content = |content: Value| json!({ "type": "user.message", "content": content });
    for (body, field) in [
        (json!(5), "body"),
        (json!([]), "events"),
        (json!({ "events": {} }), "events"),
        (json!({}), "events[0].type"),
        (json!([7]), "events[0]"),
        (json!({ "type": "user.shout" }), "events[0].type"),
        (json!({ "type": "agent.message", "content": [text("x")] }), "events[0].type"),
        (json!({ "type": "user.message" }), "events[0].content"),
        (with_content(json!("hello")), "events[0].content"),
        (with_content(json!([])), "events[0].content"),
        (with_content(json!(vec![text("x"); 101])), "events[0].content"),
        (with_content(json!([text(&"x".repeat(20_001))])), "events[0].content[0].text"),
        (with_content(json!([text("ok"), { "type": "image", "url": "x" }])), "events[0].content[1].type"),
        (with_content(json!([{ "type": "text", "text": 5 }])), "events[0].content[0].text"),
        (with_content(json!([text(" ")])), "events[0].content"),
        (json!([message("one"), message("two")]), "events"),
        (json!({ "type": "user.steer" }), "events[0].message"),
        (json!({ "type": "user.interrupt", "message": 1 }), "events[0].message"),
        (
            json!({ "type": "user.tool_confirmation", "tool_use_id": "t", "result": "maybe" }),
            "events[0].result",
        ),
        (
            json!({ "type": "user.tool_confirmation", "tool_use_id": "t", "result": "allow", "scope": "ever" }),
            "events[0].scope",
        ),
        (
            json!({ "type": "user.custom_tool_result", "tool_use_id": "t", "content": [text("x")], "is_error": "no" }),
            "events[0].is_error",
        ),
        (json!({ "type": "user.clarify_result", "request_id": "c" }), "events[0].answer"),
        (json!({ "type": "user.sudo_result", "request_id": "s" }), "events[0].password"),
        (json!({ "type": "user.secret_result", "value": "v" }), "events[0].request_id"),
    ] {
        let problem = server.client.post(&path, body).await.expect_error(400, "validation_error");
        assert_eq!(problem["field"], field, "{problem}");
    }
    for bytes in ["{", "", "nonsense", "{\"events\": [", "\u{0}", "{\"type\": \"user.message\"} extra"] {
        server
            .client
            .send(Method::Post, &path, Some(bytes.into()))
            .await
            .expect_error(400, "validation_error");
    }
    assert!(server.client.events(&session).await.is_empty());

    server.model.script([Reply::text("Fine.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "and now a good one").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn the_largest_legal_message_is_taken() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let block = json!({ "type": "text", "text": "ä".repeat(20_000) });
    let mut stream = server.client.stream(&session, "").await;
    let body = json!({ "type": "user.message", "content": vec![block; 100] });
    server.client.event(&session, body).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn all_three_forms_of_a_request_are_read() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}/events");
    let steer = json!({ "type": "user.steer", "message": "be kind" });
    for body in [steer.clone(), json!([steer, steer]), json!({ "events": [steer] })] {
        server.client.post(&path, body).await.expect(200);
    }
    assert_eq!(server.client.events(&session).await.len(), 4);
}

#[tokio::test]
async fn ids_of_other_kinds_and_odd_ids_are_not_found() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let agent = server.agent_with(json!({})).await;
    for path in [
        format!("/v1/sessions/{agent}"),
        format!("/v1/agents/{session}"),
        "/v1/sessions/evt_1".to_owned(),
        "/v1/sessions/..%2F..%2Fetc".to_owned(),
        "/v1/sessions/%00".to_owned(),
        format!("/v1/sessions/{}", "x".repeat(500)),
        format!("/v1/sessions/{agent}/events"),
        "/v2/agents".to_owned(),
    ] {
        server.client.get(&path).await.expect_error(404, "not_found");
    }
    server
        .client
        .post(&format!("/v1/agents/{session}/sessions"), json!({}))
        .await
        .expect_error(404, "not_found");
    server.client.delete("/v1/agents").await.expect_error(405, "method_not_allowed");
}

#[tokio::test]
async fn ids_that_are_no_text_are_not_found_in_the_words_of_their_surface() {
    let server = TestServer::start().await;
    for (path, says) in [
        ("/v1/sessions/%FF", "message"),
        ("/v1/agents/x/skills/%C0%AF", "message"),
        ("/v1/keys/%FF", "message"),
        ("/aap/sessions/%FF", "error"),
        ("/conversation/sessions/%FF/events", "message"),
        ("/conversation/customers/%FF", "message"),
        ("/parlant/sessions/%FF", "detail"),
        ("/routines/%FF", "message"),
        ("/runs/%FF", "message"),
        ("/deliveries/%FF", "message"),
    ] {
        let method = if path.contains("keys") { Method::Delete } else { Method::Get };
        let problem = server.client.send(method, path, None).await.expect(404);
        assert!(problem[says].as_str().is_some_and(|text| text.contains(path)), "{path}: {problem}");
    }
    server.client_with("").get("/v1/sessions/%FF").await.expect_error(401, "unauthorized");
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let server = TestServer::start_with(Setup { max_body_bytes: 10_000, ..Setup::default() }).await;
    let session = server.session().await;
    let answer = server.client.message(&session, &"x".repeat(11_000)).await;
    let problem = answer.expect_error(413, "payload_too_large");
    assert!(problem["message"].as_str().unwrap().contains("10000 bytes"), "{problem}");
    server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
}

#[tokio::test]
async fn a_wrong_type_is_told_in_the_words_of_json() {
    let server = TestServer::start().await;
    for (fields, told) in [
        (
            json!({ "tools": {} }),
            "tools: is not what is expected here: invalid type: object, expected a list",
        ),
        (json!({ "name": [] }), "name: is not what is expected here: invalid type: list, expected a string"),
    ] {
        let mut agent = json!({ "name": "A", "model": "demo/x" });
        fields.as_object().unwrap().iter().for_each(|(name, value)| agent[name] = value.clone());
        let problem = server.client.post("/v1/agents", agent).await.expect_error(400, "validation_error");
        assert_eq!(problem["message"], told);
    }
    let agent = server.agent_with(json!({})).await;
    let versioned = json!({ "agentVersion": "x" });
    let answer = server.client.post(&format!("/v1/agents/{agent}/sessions"), versioned).await;
    let problem = answer.expect_error(400, "validation_error");
    assert!(problem["message"].as_str().unwrap().ends_with("expected a whole number from 0 on"), "{problem}");
    let answer = server.client.post("/v1/keys", json!({ "scopes": ["everything"] })).await;
    let problem = answer.expect_error(400, "validation_error");
    assert_eq!(problem["field"], "scopes[0]");
    assert!(problem["message"].as_str().unwrap().contains("unknown value `everything`"), "{problem}");
    // Where it is no JSON at all, the place is what helps.
    let answer = server.client.send(Method::Post, "/v1/agents", Some("{\"name\": }".into())).await;
    let problem = answer.expect_error(400, "validation_error");
    assert!(problem["message"].as_str().unwrap().contains("line 1 column 10"), "{problem}");
}

#[tokio::test]
async fn bad_sessions_name_the_field() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let path = format!("/v1/agents/{agent}/sessions");
    let many: serde_json::Map<String, Value> = (0..65).map(|n| (n.to_string(), json!(n))).collect();
    for (body, field) in [
        (json!([]), "body"),
        (json!({ "userId": 5 }), "userId"),
        (json!({ "title": "x".repeat(501) }), "title"),
        (json!({ "userId": "" }), "userId"),
        (json!({ "metadata": many }), "metadata"),
        (json!({ "metadata": "x" }), "metadata"),
    ] {
        let problem = server.client.post(&path, body).await.expect_error(400, "validation_error");
        assert_eq!(problem["field"], field, "{problem}");
    }
    server.client.post(&path, json!({ "agentVersion": 7 })).await.expect_error(404, "not_found");
    assert_eq!(server.client.get("/v1/sessions").await.expect(200)["data"], json!([]));
    server.client.send(Method::Post, &path, None).await.expect(201);
}
