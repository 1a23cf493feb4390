//! Sessions: created with a conversation, listed, read, deleted.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::{App, get_weather, says};

fn earlier() -> Value {
    json!([
        { "role": "system", "content": "Speak like a pirate." },
        { "role": "user", "content": "What's the weather in Tokyo?" },
        { "role": "assistant", "content": [
            { "type": "thinking", "thinking": "I should look." },
            { "type": "text", "text": "Let me check that." },
            { "type": "tool_use", "toolCallId": "call_001", "name": "get_weather", "input": { "location": "Tokyo" } },
            { "type": "tool_use", "toolCallId": "call_002", "name": "get_weather", "input": { "location": "Kyoto" } },
        ] },
        { "role": "tool", "toolCallId": "call_002", "content": "Rain" },
        { "role": "tool", "toolCallId": "call_001", "content": [{ "type": "text", "text": "Sun" }, { "type": "text", "text": "shine" }] },
        { "role": "assistant", "content": "Arr, sunshine." },
        { "role": "assistant", "content": "And rain." },
    ])
}

#[tokio::test]
async fn a_seeded_conversation_is_in_the_history_and_read_by_the_model() {
    let app = App::with_agent(json!({ "instructions": "Be brief." })).await;
    let session = app.session_with(json!({}), json!({ "messages": earlier() })).await;
    assert_eq!(app.history(&session, "full").await, earlier());
    assert!(app.server.model.requests().is_empty(), "creating runs nothing");
    app.server.model.script([Reply::text("Aye.")]);
    let body = app.turn(&session, says("Thanks")).await;
    assert_eq!(body["messages"], json!([{ "role": "assistant", "content": "Aye." }]));
    let sent = app.server.model.requests().pop().unwrap().body["messages"].clone();
    assert_eq!(sent[0], json!({ "role": "system", "content": "Be brief.\n\nSpeak like a pirate." }));
    let roles: Vec<&str> =
        sent.as_array().unwrap().iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "assistant", "assistant", "user"]);
    assert_eq!((&sent[3]["content"], &sent[4]["content"]), (&json!("Sunshine"), &json!("Rain")));

    let full = app.history(&session, "full").await;
    let mut expected = earlier();
    let news =
        [json!({ "role": "user", "content": "Thanks" }), json!({ "role": "assistant", "content": "Aye." })];
    expected.as_array_mut().unwrap().extend(news);
    assert_eq!(full, expected);
    assert!(!full.to_string().contains("Be brief."), "the agent's instructions are its own");
    let compacted = app.history(&session, "compacted").await;
    assert_eq!(compacted.as_array().unwrap().len(), full.as_array().unwrap().len());
}

#[tokio::test]
async fn a_seeded_conversation_is_seen_over_other_surfaces() {
    let app = App::start().await;
    let session = app.session_with(json!({}), json!({ "messages": earlier() })).await;
    let detail = app.server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let said: Vec<(&str, &str)> = detail["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message["content"].as_str().unwrap()))
        .collect();
    assert_eq!(said[0], ("user", "What's the weather in Tokyo?"));
    assert_eq!(said.last(), Some(&("agent", "And rain.")));
    assert_eq!((&detail["status"], &detail["pendingActions"]), (&json!("idle"), &json!([])));
    let events = app.server.client.events(&session).await;
    assert!(events.iter().all(|event| event["status"] == "complete"), "{events:?}");
}

#[tokio::test]
async fn a_seeded_session_survives_a_restart() {
    let app = App::start().await;
    let session =
        app.session_with(json!({}), json!({ "messages": earlier(), "tools": [get_weather()] })).await;
    let before = app.info(&session).await;
    let app = App { server: app.server.restart().await, agent: app.agent };
    assert_eq!(app.history(&session, "full").await, earlier());
    assert_eq!(app.info(&session).await, before);
}

#[tokio::test]
async fn sessions_are_listed_in_pages_and_deleted() {
    let app = App::start().await;
    let mut made = Vec::new();
    for _ in 0..101 {
        made.push(app.session().await);
    }
    made.reverse();
    let client = &app.server.client;
    let first = client.get("/aap/sessions").await.expect(200);
    assert_eq!(first["sessions"].as_array().unwrap().len(), 100);
    let next = first["next"].as_str().unwrap();
    let second = client.get(&format!("/aap/sessions?after={next}")).await.expect(200);
    assert_eq!(
        second.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["sessions"],
        "no next on the last page"
    );
    let listed = first["sessions"].as_array().unwrap().iter().chain(second["sessions"].as_array().unwrap());
    let ids: Vec<&str> = listed.map(|session| session["sessionId"].as_str().unwrap()).collect();
    assert_eq!(ids, made);
    assert_eq!(first["sessions"][0], app.info(&made[0]).await);

    let path = format!("/aap/sessions/{}", made[0]);
    let gone = client.delete(&path).await;
    assert_eq!((gone.status, gone.body), (204, Value::Null));
    for answer in [
        client.get(&path).await,
        client.delete(&path).await,
        client.get(&format!("{path}/history?type=full")).await,
    ] {
        assert_eq!(answer.status, 404, "{}", answer.body);
    }
    assert_eq!(app.post_turn(&made[0], json!({ "messages": says("hello") })).await.status, 404);
    client.get("/aap/sessions?after=nonsense").await.expect(400);
}

#[tokio::test]
async fn nothing_of_one_tenant_is_there_for_another() {
    let app = App::start().await;
    let session = app.session().await;
    let other = app.server.client.with_header("x-petasos-tenant", "other");
    let path = format!("/aap/sessions/{session}");
    assert_eq!(other.get(&path).await.status, 404);
    assert_eq!(other.post(&format!("{path}/turns"), json!({ "messages": says("hello") })).await.status, 404);
    assert_eq!(other.delete(&path).await.status, 404);
    let answer = other.post("/aap/sessions", json!({ "agent": { "name": app.agent } })).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
}
