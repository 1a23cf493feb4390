//! Requests that make no sense: an error that names the cause, and nothing has changed.

use petasos_testkit::Answer;
use serde_json::json;

use super::Talk;

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.body["code"].as_str()), (status, Some(code)), "{}", answer.body);
    assert!(answer.body["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert!(answer.body["details"].is_object(), "{}", answer.body);
}

#[tokio::test]
async fn events_that_cannot_be_posted() {
    let talk = Talk::start().await;
    for event in [
        json!({ "kind": "user_message", "text": "" }),
        json!({ "kind": "user_message", "text": "  \n" }),
        json!({ "kind": "user_message" }),
        json!({ "kind": "user_message", "text": 5 }),
        json!({ "kind": "assistant_message", "text": "x" }),
        json!({ "kind": "status", "text": "x" }),
        json!({ "kind": "human_agent_message", "text": "x" }),
        json!({ "kind": "human_agent_message", "text": "x", "author": "" }),
        json!({ "kind": "human_agent_message", "text": "", "author": "Ann" }),
        json!({ "text": "x" }),
        json!({}),
        json!([]),
    ] {
        refused(&talk.post(event).await, 422, "invalid_request");
    }
    assert!(talk.read("wait_for_data=0").await.is_empty());
}

#[tokio::test]
async fn errors_hold_no_names_of_types() {
    let talk = Talk::start().await;
    let sessions = "/conversation/sessions".to_owned();
    for (path, body, told) in [
        (sessions.clone(), json!(3), "invalid type: integer `3`, expected an object"),
        (
            sessions.clone(),
            json!({ "agent_id": {} }),
            "agent_id: is not what is expected here: invalid type: object",
        ),
        (sessions, json!([]), "body: must be a JSON object, and is a list"),
        (format!("{}/events", talk.path()), json!("x"), "invalid type: string \"x\", expected an object"),
    ] {
        let answer = talk.server.client.post(&path, body).await;
        refused(&answer, 422, "invalid_request");
        let message = answer.body["message"].as_str().unwrap();
        assert!(message.contains(told) && !message.contains("at line"), "{message}");
    }
}

#[tokio::test]
async fn readings_that_make_no_sense() {
    let talk = Talk::start().await;
    for query in [
        "min_offset=-1",
        "min_offset=x",
        "min_offset=1.5",
        "wait_for_data=-1",
        "wait_for_data=soon",
        "wait_for_data=0.5",
        "kinds=message",
        "kinds=status,nonsense",
        "sse=perhaps",
    ] {
        refused(&talk.get(query).await, 422, "invalid_request");
    }
    assert!(talk.read("min_offset=18446744073709551615&wait_for_data=0").await.is_empty());
}

#[tokio::test]
async fn sources_that_nobody_has() {
    let talk = Talk::start().await;
    let events =
        |source: &str| format!("/parlant/sessions/{}/events?wait_for_data=0&source={source}", talk.session);
    let problem = talk.server.client.get(&events("zz")).await.expect(422);
    let problem = problem["detail"].as_str().unwrap().to_owned();
    assert!(problem.starts_with("source: ") && problem.contains("human_agent"), "{problem}");
    for source in ["customer", "customer_ui", "human_agent", "ai_agent", "system"] {
        talk.server.client.get(&events(source)).await.expect(200);
    }
}

#[tokio::test]
async fn a_customer_who_cannot_be_is_called_by_the_field() {
    let talk = Talk::start().await;
    let agent = talk.server.agent_with(json!({})).await;
    let body = json!({ "agent_id": agent, "customer_id": "" });
    let answer = talk.server.client.post("/conversation/sessions", body).await;
    refused(&answer, 422, "invalid_request");
    assert_eq!(answer.body["details"]["field"], "customer_id", "{}", answer.body);
}

#[tokio::test]
async fn what_is_not_there() {
    let talk = Talk::start().await;
    let client = &talk.server.client;
    for path in ["/conversation/sessions/session_none", "/conversation/sessions/no.id"] {
        refused(&client.get(path).await, 404, "not_found");
        refused(&client.patch(path, json!({ "mode": "manual" })).await, 404, "not_found");
        refused(&client.delete(path).await, 404, "not_found");
        for query in ["?wait_for_data=0", "?wait_for_data=5", "?sse=true"] {
            refused(&client.get(&format!("{path}/events{query}")).await, 404, "not_found");
        }
        let message = json!({ "kind": "user_message", "text": "x" });
        refused(&client.post(&format!("{path}/events"), message).await, 404, "not_found");
    }
    for agent in ["nobody", "no body", ""] {
        let answer = client.post("/conversation/sessions", json!({ "agent_id": agent })).await;
        refused(&answer, 404, "not_found");
    }
    let stranger = client.with_header("x-petasos-tenant", "other");
    refused(&stranger.get(&talk.path()).await, 404, "not_found");
    refused(&talk.server.client_with("").get(&talk.path()).await, 401, "unauthorized");
    client.get("/schemas/none.json").await.expect_error(404, "not_found");
}

#[tokio::test]
async fn changes_that_make_no_sense() {
    let talk = Talk::start().await;
    for body in [
        json!({ "mode": "asleep" }),
        json!({ "title": 5 }),
        json!({ "metadata": { "set": [] } }),
        json!({ "metadata": { "unset": "a" } }),
    ] {
        refused(&talk.server.client.patch(&talk.path(), body).await, 422, "invalid_request");
    }
    for query in ["limit=0", "limit=x", "cursor=x", "sort=up", "agent_id=a%20b"] {
        let path = format!("/conversation/sessions?{query}");
        refused(&talk.server.client.get(&path).await, 422, "invalid_request");
    }
}
