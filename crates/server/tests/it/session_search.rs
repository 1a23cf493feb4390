//! Search over the earlier sessions of a user.

use petasos_testkit::{Reply, TestServer};
use serde_json::json;

use crate::kept::{call, call_json, session_of, turn};

async fn say(server: &TestServer, session: &str, text: &str, answer: &str) {
    server.model.script([Reply::text(answer)]);
    turn(server, session, text).await;
}

#[tokio::test]
async fn earlier_sessions_are_found_and_read() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let earlier = session_of(&server, &agent, "anna").await;
    say(&server, &earlier, "Where is the teapot?", "On the shelf.").await;
    say(&server, &earlier, "And the kettle?", "Beside the stove.").await;
    let session = session_of(&server, &agent, "anna").await;
    let found = call_json(&server, &session, "session_search", json!({ "query": "kettles" })).await;
    let hit = &found["sessions"][0];
    assert_eq!((&hit["session_id"], &hit["title"]), (&json!(earlier), &json!("Where is the teapot?")));
    assert_eq!(hit["messages"][0]["snippet"], "And the kettle?");

    let around =
        json!({ "session_id": earlier, "around_message_id": hit["messages"][0]["message_id"], "window": 1 });
    let read = call_json(&server, &session, "session_search", around).await;
    let texts: Vec<_> =
        read["messages"].as_array().unwrap().iter().map(|message| message["text"].clone()).collect();
    assert_eq!(texts, ["On the shelf.", "And the kettle?", "Beside the stove."]);
    let read = call_json(&server, &session, "session_search", json!({ "session_id": earlier })).await;
    assert_eq!(read["messages"].as_array().unwrap().len(), 4);

    // Words that no message has together, one side only, and a list without words.
    let some = call_json(&server, &session, "session_search", json!({ "query": "teapot zebra" })).await;
    assert_eq!(some["sessions"].as_array().unwrap().len(), 1);
    let agents = json!({ "query": "kettle OR stove", "role_filter": "agent", "sort": "newest" });
    let agents = call_json(&server, &session, "session_search", agents).await;
    assert_eq!(agents["sessions"][0]["messages"][0]["snippet"], "Beside the stove.");
    let latest = call_json(&server, &session, "session_search", json!({})).await;
    assert_eq!(latest["sessions"].as_array().unwrap().len(), 1, "not the one that asks");
}

#[tokio::test]
async fn nobody_finds_what_others_said() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let annas = session_of(&server, &agent, "anna").await;
    say(&server, &annas, "My teapot is green.", "Nice.").await;
    let bens = session_of(&server, &agent, "ben").await;
    let found = call_json(&server, &bens, "session_search", json!({ "query": "teapot" })).await;
    assert_eq!(found["sessions"], json!([]));
    let latest = call_json(&server, &bens, "session_search", json!({})).await;
    assert_eq!(latest["sessions"], json!([]));
    let (text, failed) = call(&server, &bens, "session_search", json!({ "session_id": annas })).await;
    assert!(failed && text.contains("no earlier session"), "{text}");

    let later = session_of(&server, &agent, "anna").await;
    server.client.delete(&format!("/v1/sessions/{annas}")).await.expect(200);
    let found = call_json(&server, &later, "session_search", json!({ "query": "teapot" })).await;
    assert_eq!(found["sessions"], json!([]), "what was deleted is gone");
}

#[tokio::test]
async fn strange_questions_get_an_answer() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({})).await;
    let session = session_of(&server, &agent, "anna").await;
    for query in ["\"", "a AND (", "NEAR(", "*", "label:scope1", "'; DROP TABLE events; --", "🍵"] {
        let found = call_json(&server, &session, "session_search", json!({ "query": query })).await;
        assert_eq!(found["sessions"], json!([]), "{query}");
    }
    assert!(call(&server, &session, "session_search", json!({ "session_id": "../x" })).await.1);
    assert!(call(&server, &session, "session_search", json!({ "limit": "many" })).await.1);
}
