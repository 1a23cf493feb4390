//! Images in content: passed to models that take them, refused where not.

use petasos_testkit::{Reply, TestServer};
use serde_json::json;

use super::{App, call_ids, get_weather};

const LINK: &str = "https://example.com/hat.png";
const DATA: &str = "data:image/png;base64,iVBORw0KGgo=";

#[tokio::test]
async fn images_reach_the_model_and_stay_in_the_history() {
    let app = App::start().await;
    let session = app.session_with(json!({}), json!({ "tools": [get_weather()] })).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({})), Reply::text("A hat.")]);
    let content = json!([
        { "type": "text", "text": "What is this?" },
        { "type": "image", "url": LINK },
        { "type": "image", "url": DATA },
    ]);
    let stopped = app.turn(&session, json!([{ "role": "user", "content": content }])).await;
    let result = json!([{ "type": "text", "text": "seen" }, { "type": "image", "url": DATA }]);
    let answer = json!([{ "role": "tool", "toolCallId": call_ids(&stopped)[0], "content": result }]);
    app.turn(&session, answer).await;
    let sent = app.server.model.requests().pop().unwrap().body["messages"].clone();
    assert_eq!(
        sent[0]["content"],
        json!([
            { "type": "text", "text": "What is this?" },
            { "type": "image_url", "image_url": { "url": LINK } },
            { "type": "image_url", "image_url": { "url": DATA } },
        ])
    );
    assert_eq!(sent[2]["content"], "seen");
    assert_eq!(sent[3]["content"][1]["image_url"]["url"], DATA);
    for kind in ["full", "compacted"] {
        let history = app.history(&session, kind).await;
        assert_eq!((&history[0]["content"], &history[2]["content"]), (&content, &result), "{kind}");
    }
    // A protocol of text alone says that there was an image.
    let events = app.server.client.events(&session).await;
    let shown = events[0]["payload"]["content"].to_string();
    assert!(shown.contains(&format!("[image: {LINK}]")) && shown.contains("[image: image/png"), "{shown}");
}

#[tokio::test]
async fn a_model_that_takes_none_refuses_them_clearly() {
    let server = TestServer::start().await;
    let agent = server.client.agent(json!({ "name": "Echo", "model": "demo/fast" })).await;
    let image = json!([{ "role": "user", "content": [{ "type": "image", "url": LINK }] }]);
    let seeded = json!({ "agent": { "name": agent }, "messages": image });
    let refused = server.client.post("/aap/sessions", seeded).await.expect(400);
    assert!(refused["error"].as_str().unwrap().contains("demo/fast takes no images"), "{refused}");
    let created =
        server.client.post("/aap/sessions", json!({ "agent": { "name": agent } })).await.expect(201);
    let path = format!("/aap/sessions/{}", created["sessionId"].as_str().unwrap());
    let refused =
        server.client.post(&format!("{path}/turns"), json!({ "messages": image })).await.expect(400);
    assert!(refused["error"].as_str().unwrap().contains("demo/fast takes no images"), "{refused}");
    let history = server.client.get(&format!("{path}/history?type=full")).await.expect(200);
    assert_eq!(history["history"]["full"], json!([]));
}
