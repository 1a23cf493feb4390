//! Sessions as JSON lines, out and in.

use petasos_net::{Client as HttpClient, Method, Options};
use petasos_testkit::{Answer, Gate, Reply, Setup, TestServer};
use serde_json::{Value, json};

/// The lines of an export.
async fn export(server: &TestServer, session: &str) -> Vec<Value> {
    let http = HttpClient::new(&Options::default());
    let url = format!("{}/v1/sessions/{session}/export", server.url);
    let key = [("authorization", "Bearer pk_admin_key_of_tests")];
    let response = http.request(Method::Get, &url, &key, None).await.unwrap();
    assert_eq!((response.status(), response.header("content-type")), (200, Some("application/jsonl")));
    let text = response.text_bounded(usize::MAX).await.unwrap();
    assert!(text.ends_with('\n'));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn import_with(server: &TestServer, query: &str, lines: &[Value]) -> Answer {
    let body = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    server.client.send(Method::Post, &format!("/v1/sessions/import{query}"), Some(body.into())).await
}

async fn import(server: &TestServer, lines: &[Value]) -> Answer {
    import_with(server, "", lines).await
}

async fn detail(server: &TestServer, session: &str) -> Value {
    server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)
}

/// A session with a turn that used a tool, a title and metadata.
async fn used_session(server: &TestServer) -> String {
    let session = server.session().await;
    server.model.script([Reply::tool_call("todo", json!({ "todos": ["x"] })), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let change = json!({ "title": "Mine", "metadata": { "weight": 0.1 } });
    server.client.patch(&format!("/v1/sessions/{session}"), change).await.expect(200);
    session
}

#[tokio::test]
async fn an_imported_session_is_the_one_that_was_exported() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let session = used_session(&here).await;
    let lines = export(&here, &session).await;
    assert_eq!(lines[0]["format"], "petasos.session");
    assert_eq!(lines[0]["last_sequence"], lines.len() - 1);
    assert!(lines.iter().any(|line| line["payload"]["type"] == "span.model_finished"), "internal ones too");
    let imported = import(&there, &lines).await.expect(201);
    assert_eq!((&imported["id"], &imported["interrupted"]), (&json!(session), &json!(false)));
    assert_eq!(detail(&there, &session).await, detail(&here, &session).await);
    assert_eq!(there.client.events(&session).await, here.client.events(&session).await);
    assert_eq!(export(&there, &session).await[1..], lines[1..]);

    // It goes on there, with the agent that came with it.
    there.model.script([Reply::text("Still here.")]);
    let mut stream = there.client.stream(&session, "").await;
    there.client.message(&session, "and now?").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));

    let problem = import(&here, &lines).await.expect_error(409, "already_exists");
    assert!(problem["message"].as_str().unwrap().contains(&session), "{problem}");
    let copy = import_with(&here, "?newId=true", &lines).await.expect(201);
    let copy = copy["id"].as_str().unwrap();
    assert_ne!(copy, session);
    assert_eq!(detail(&here, copy).await["messages"], detail(&here, &session).await["messages"]);
}

#[tokio::test]
async fn a_long_log_comes_in_pages_and_an_empty_one_too() {
    let server = TestServer::start().await;
    let session = server.session().await;
    assert_eq!(export(&server, &session).await.len(), 1);
    let steers: Vec<Value> =
        (0..450).map(|n| json!({ "type": "user.steer", "message": n.to_string() })).collect();
    for part in steers.chunks(50) {
        server.client.post(&format!("/v1/sessions/{session}/events"), json!(part)).await.expect(200);
    }
    let lines = export(&server, &session).await;
    let sequences: Vec<u64> = lines[1..].iter().map(|line| line["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, (1..=450).collect::<Vec<_>>());
    import_with(&server, "?newId=true", &lines).await.expect(201);
}

#[tokio::test]
async fn a_running_turn_is_interrupted_and_a_pause_stays() {
    let (here, there) = (TestServer::start().await, TestServer::start().await);
    let session = here.session().await;
    let gate = Gate::new();
    here.model.script([Reply::text("Later.").gate(&gate)]);
    here.client.message(&session, "go").await.expect(200);
    gate.reached().await;
    let imported = import(&there, &export(&here, &session).await).await.expect(201);
    assert_eq!(imported["interrupted"], true);
    let shown = detail(&there, &session).await;
    assert_eq!((&shown["status"], &shown["stopReason"]["interrupted"]), (&json!("idle"), &json!(true)));
    assert_eq!(detail(&here, &session).await["status"], "running", "an export changes nothing");
    gate.open();

    let paused = here.session_with_custom_tool().await;
    here.model.script([Reply::tool_call("check_order", json!({ "order": 7 }))]);
    let mut stream = here.client.stream(&paused, "").await;
    here.client.message(&paused, "where is it?").await.expect(200);
    stream.until_idle().await;
    let imported = import(&there, &export(&here, &paused).await).await.expect(201);
    assert_eq!(imported["interrupted"], false);
    let there = there.restart().await;
    let shown = detail(&there, &paused).await;
    assert_eq!(shown, detail(&here, &paused).await);
    there.model.script([Reply::text("It is on its way.")]);
    let mut stream = there.client.stream(&paused, "").await;
    let id = &shown["pendingActions"][0]["id"];
    let content = json!([{ "type": "text", "text": "shipped" }]);
    let answer = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
    there.client.event(&paused, answer).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    assert!(there.model.requests().len() == 1, "nothing ran by itself");
}

#[tokio::test]
async fn what_cannot_be_a_session_is_refused_and_leaves_nothing() {
    let (here, server) = (TestServer::start().await, TestServer::start().await);
    let good = export(&here, &used_session(&here).await).await;
    let with = |index: usize, path: &str, value: Value| {
        let mut lines = good.clone();
        *lines[index].pointer_mut(path).unwrap() = value;
        lines
    };
    let without = |index: usize| {
        let mut lines = good.clone();
        lines.remove(index);
        lines
    };
    let running = json!({ "type": "session.status_running" });
    let waiting = json!({ "type": "session.status_idle", "stop_reason": { "type": "requires_action", "event_ids": ["x"] } });
    let last = good.len() - 1;
    for (lines, field) in [
        (with(0, "/version", json!(2)), "line 1"),
        (with(0, "/format", json!("x".repeat(1000))), "line 1"),
        (with(0, "/session", json!(5)), "line 1"),
        (with(0, "/session/id", json!("import")), "session.id"),
        (with(0, "/agent/id", json!("agent_other")), "agent.id"),
        (with(0, "/last_sequence", json!(1)), "last_sequence"),
        (with(0, "/session/created_at", json!("9000-01-01T00:00:00Z")), "session.created_at"),
        (with(2, "/payload/type", json!("session.exploded")), "line 3"),
        (with(2, "/sequence", json!(1)), "line 3"),
        (with(2, "/session_id", json!("session_other")), "line 3"),
        (with(3, "/created_at", json!("9000-01-01T00:00:00Z")), "line 4"),
        (with(3, "/payload/takes_up", json!([u64::MAX])), "line 4"),
        (without(3), "line 4"),
        (without(last), "last_sequence"),
        (without(0), "line 1"),
        (with(2, "", json!("x".repeat(100_000))), "line 3"),
        (with(last, "/payload", running), "events"),
        (with(last, "/payload", waiting), "events"),
    ] {
        let problem = import(&server, &lines).await.expect_error(400, "validation_error");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(problem.to_string().len() < 1000, "{problem}");
    }
    for garbage in ["", "\n\n", "nonsense", "{}\n{}", "\u{0}", "[1]\n", "{\"format\":"] {
        let answer = server.client.send(Method::Post, "/v1/sessions/import", Some(garbage.into())).await;
        answer.expect_error(400, "validation_error");
    }
    import_with(&server, "?newId=maybe", &good).await.expect_error(400, "validation_error");
    assert_eq!(server.client.get("/v1/sessions").await.expect(200)["data"], json!([]));
    assert_eq!(server.client.get("/v1/agents").await.expect(200)["data"], json!([]));
    import(&server, &good).await.expect(201);
}

#[tokio::test]
async fn an_agent_of_the_same_id_must_have_the_version() {
    let server = TestServer::start().await;
    let mut lines = export(&server, &used_session(&server).await).await;
    lines[0]["session"]["agent_version"] = json!(7);
    let problem = import_with(&server, "?newId=true", &lines).await.expect_error(400, "validation_error");
    assert_eq!(problem["field"], "session.agent_version");
    // Where there is none, the one of the file becomes version 1.
    let there = TestServer::start().await;
    assert_eq!(import(&there, &lines).await.expect(201)["agentVersion"], 1);
}

#[tokio::test]
async fn only_administrators_of_the_tenant_and_only_so_much() {
    let server = TestServer::start_with(Setup { max_body_bytes: 10_000, ..Setup::default() }).await;
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}/export");
    let made = server.client.post("/v1/keys", json!({})).await.expect(201);
    let user = server.client_with(made["key"].as_str().unwrap());
    user.get(&path).await.expect_error(403, "forbidden");
    user.post("/v1/sessions/import", json!({})).await.expect_error(403, "forbidden");
    let elsewhere = server.client.with_header("x-petasos-tenant", "globex");
    elsewhere.get(&path).await.expect_error(404, "not_found");
    server.client.get("/v1/sessions/a%2Fb/export").await.expect_error(404, "not_found");
    let large = "x".repeat(11_000);
    let answer = server.client.send(Method::Post, "/v1/sessions/import", Some(large.into())).await;
    answer.expect_error(413, "payload_too_large");

    // It can be taken in elsewhere, but not twice.
    let lines = export(&server, &session).await;
    let body = lines[0].to_string();
    let answer = elsewhere.send(Method::Post, "/v1/sessions/import", Some(body.clone().into())).await;
    answer.expect_error(409, "already_exists");
    let answer = elsewhere.send(Method::Post, "/v1/sessions/import?newId=true", Some(body.into())).await;
    let copy = answer.expect(201)["id"].as_str().unwrap().to_owned();
    elsewhere.get(&format!("/v1/sessions/{copy}")).await.expect(200);
    server.client.get(&format!("/v1/sessions/{copy}")).await.expect_error(404, "not_found");
}
