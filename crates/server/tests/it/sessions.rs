//! Sessions: created, listed, changed, put away.

use petasos_testkit::{Gate, Reply, TestServer};
use serde_json::{Value, json};

#[tokio::test]
async fn a_new_session_has_the_documented_fields() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let body = json!({ "userId": "org_acme", "title": "Holiday campaign", "metadata": { "campaign": "x" } });
    let session = server.client.post(&format!("/v1/agents/{agent}/sessions"), body).await.expect(201);
    assert!(session["id"].as_str().unwrap().starts_with("session_"));
    assert_eq!(session["agentId"], agent.as_str());
    assert_eq!(session["agentVersion"], 1);
    assert_eq!(session["userId"], "org_acme");
    assert_eq!(session["title"], "Holiday campaign");
    assert_eq!(session["status"], "idle");
    assert_eq!(session["metadata"], json!({ "campaign": "x" }));
    let created_at = session["createdAt"].as_str().unwrap();
    assert_eq!((created_at.len(), created_at.ends_with('Z')), (20, true), "{created_at}");

    let shown =
        server.client.get(&format!("/v1/sessions/{}", session["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(shown["messages"], json!([]));
    assert_eq!(shown["pendingActions"], json!([]));
    assert_eq!(shown["stopReason"], Value::Null);
    assert_eq!(shown["archivedAt"], Value::Null);
}

#[tokio::test]
async fn sessions_are_filtered_and_paged() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let other = server.agent_with(json!({})).await;
    let create = async |agent: &str, user: &str, tag: Value| {
        let body = json!({ "userId": user, "metadata": { "a.b": tag } });
        let session = server.client.post(&format!("/v1/agents/{agent}/sessions"), body).await.expect(201);
        session["id"].as_str().unwrap().to_owned()
    };
    let mut made = Vec::new();
    for index in 0..25 {
        made.push(create(&agent, if index % 2 == 0 { "anna" } else { "ben" }, json!(index)).await);
    }
    create(&other, "anna", json!("x")).await;
    let ids = async |query: &str| {
        let page = server.client.get(&format!("/v1/sessions{query}")).await.expect(200);
        let ids = page["data"].as_array().unwrap().iter().map(|s| s["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), page["nextCursor"].clone())
    };
    assert_eq!(ids("").await.0.len(), 20, "a page holds 20 unless asked otherwise");
    let (mut walked, mut cursor) = ids(&format!("?agentId={agent}&limit=10")).await;
    while let Some(next) = cursor.as_str().map(str::to_owned) {
        // Rows that are added meanwhile do not disturb the walk.
        create(&agent, "carl", json!(0)).await;
        let (page, after) = ids(&format!("?agentId={agent}&limit=10&cursor={next}")).await;
        walked.extend(page);
        cursor = after;
    }
    made.reverse();
    assert_eq!(walked, made);
    assert_eq!(ids(&format!("?agentId={agent}&userId=ben&limit=100")).await.0.len(), 12);
    assert_eq!(ids("?metadata[a.b]=7").await.0, [made[17].clone()]);
    assert_eq!(ids("?metadata[a.b]=x&userId=anna").await.0.len(), 1);
    assert_eq!(ids("?metadata[a.b]=nothing").await.0.len(), 0);
    assert_eq!(ids("?status=running").await.0.len(), 0);
    for bad in ["?limit=0", "?limit=101", "?limit=x", "?cursor=%F0", "?status=lost", "?cursor=a12"] {
        server.client.get(&format!("/v1/sessions{bad}")).await.expect_error(400, "validation_error");
    }
}

#[tokio::test]
async fn title_and_metadata_can_be_changed_and_nothing_else() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let path = format!("/v1/sessions/{session}");
    let changed = server
        .client
        .patch(&path, json!({ "title": "Q3", "metadata": { "a": 1, "b": "x" } }))
        .await
        .expect(200);
    assert_eq!((&changed["title"], &changed["metadata"]), (&json!("Q3"), &json!({ "a": 1, "b": "x" })));
    let merged =
        server.client.patch(&path, json!({ "metadata": { "a": null, "c": true } })).await.expect(200);
    assert_eq!(merged["metadata"], json!({ "b": "x", "c": true }));
    for body in [
        json!({ "userId": "x" }),
        json!({ "agentVersion": 2 }),
        json!({ "title": 5 }),
        json!({ "metadata": [] }),
    ] {
        server.client.patch(&path, body).await.expect_error(400, "validation_error");
    }
    assert!(server.client.events(&session).await.is_empty(), "settings are internal entries of the log");

    server.model.script([Reply::text("Hi.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "a first message").await.expect(200);
    let frames = stream.until_idle().await;
    assert!(!frames.iter().any(|frame| frame.event == "session.title_updated"), "a given title wins");
    assert_eq!(server.client.get(&path).await.expect(200)["title"], "Q3");
}

#[tokio::test]
async fn an_archived_session_is_off_the_list_and_takes_no_events() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let archived =
        server.client.post(&format!("/v1/sessions/{session}/archive"), json!({})).await.expect(200);
    assert!(archived["archivedAt"].is_string());
    server.client.message(&session, "hello").await.expect_error(409, "session_archived");
    let listed = |query: &'static str| {
        let client = server.client.clone();
        async move { client.get(query).await.expect(200)["data"].as_array().unwrap().len() }
    };
    assert_eq!(listed("/v1/sessions").await, 0);
    assert_eq!(listed("/v1/sessions?includeArchived=true").await, 1);
    assert_eq!(listed("/v1/sessions?status=archived").await, 1);
    server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
}

#[tokio::test]
async fn deleting_a_session_interrupts_it_and_removes_everything() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("Never").gate(&gate)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    gate.reached().await;
    let path = format!("/v1/sessions/{session}");
    server.client.delete(&path).await.expect(200);
    server.model.wait_for_disconnects(1).await;
    while stream.next().await.is_some() {}
    for answer in [
        server.client.get(&path).await,
        server.client.delete(&path).await,
        server.client.message(&session, "hello").await,
        server.client.get(&format!("{path}/events")).await,
        server.client.get(&format!("{path}/events/stream")).await,
        server.client.patch(&path, json!({ "title": "x" })).await,
    ] {
        answer.expect_error(404, "not_found");
    }
    assert_eq!(server.client.get("/v1/sessions").await.expect(200)["data"], json!([]));
    server.wait_until_asleep().await;
}

/// Twelve events of a megabyte each do not fit on one page of eight.
#[tokio::test]
async fn a_page_of_events_is_bounded_in_bytes() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let message = |n: usize| json!({ "role": "user", "content": format!("{n}:{}", "x".repeat(1 << 20)) });
    let messages: Vec<_> = (0..12).map(message).collect();
    let body = json!({ "agent": { "name": agent }, "messages": messages });
    let session = server.client.post("/aap/sessions", body).await.expect(201);
    let session = session["sessionId"].as_str().unwrap();
    for (order, expected) in [("asc", (0..12).collect::<Vec<usize>>()), ("desc", (0..12).rev().collect())] {
        let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let path =
                format!("/v1/sessions/{session}/events?limit=1000&types=user.message&order={order}{cursor}");
            let page = server.client.get(&path).await.expect(200);
            assert!(page.to_string().len() < 9 << 20, "{} bytes", page.to_string().len());
            for event in page["data"].as_array().unwrap() {
                let text = event["payload"]["content"][0]["text"].as_str().unwrap();
                seen.push(text.split_once(':').unwrap().0.parse::<usize>().unwrap());
            }
            pages += 1;
            match page["nextCursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!((seen, pages), (expected, 2), "{order}");
    }
}
