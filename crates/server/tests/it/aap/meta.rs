//! What can be talked to.

use petasos_testkit::TestServer;
use serde_json::{Value, json};

use super::App;

#[tokio::test]
async fn meta_tells_what_an_agent_can_do() {
    let options = json!([
        { "type": "text", "name": "tone", "title": "Tone", "default": "kind" },
        { "type": "select", "name": "lang", "options": ["en", "de"], "default": "en" },
        { "type": "secret", "name": "API_KEY", "description": "Of the shop.", "default": "" },
    ]);
    let fields = json!({ "name": "Helper", "options": options, "metadata": { "description": "Helps." } });
    let app = App::with_agent(fields).await;
    let meta = app.server.client.get("/aap/meta").await.expect(200);
    assert_eq!(meta["version"], 3);
    let agent = &meta["agents"][0];
    assert_eq!(agent["name"], app.agent.as_str());
    assert_eq!(
        json!([agent["title"], agent["version"], agent["description"], agent["options"]]),
        json!(["Helper", "1", "Helps.", options])
    );
    let tools = agent["tools"].as_array().unwrap();
    let search = tools.iter().find(|tool| tool["name"] == "web_search").unwrap();
    assert_eq!(search["description"], "Searches.");
    assert_eq!(search["parameters"]["type"], "object");
    assert_eq!(
        agent["capabilities"],
        json!({
            "history": { "compacted": {}, "full": {} },
            "stream": { "delta": {}, "message": {}, "none": {} },
            "application": { "tools": {} },
            "image": { "http": {}, "data": {} },
        })
    );
}

#[tokio::test]
async fn a_model_that_takes_no_images_does_not_say_so() {
    let server = TestServer::start().await;
    server.client.agent(json!({ "name": "Echo", "model": "demo/echo" })).await;
    let meta = server.client.get("/aap/meta").await.expect(200);
    assert_eq!(meta["agents"][0]["capabilities"].get("image"), None, "{meta}");
}

#[tokio::test]
async fn meta_lists_every_agent_of_the_tenant_and_no_other() {
    let server = TestServer::start().await;
    for number in 0..105 {
        server.client.agent(json!({ "name": format!("Agent {number}"), "model": "demo/fast" })).await;
    }
    let count = |meta: Value| meta["agents"].as_array().unwrap().len();
    assert_eq!(count(server.client.get("/aap/meta").await.expect(200)), 105);
    let other = server.client.with_header("x-petasos-tenant", "other");
    assert_eq!(count(other.get("/aap/meta").await.expect(200)), 0);
}

#[tokio::test]
async fn schemas_are_published() {
    let app = App::start().await;
    let client = &app.server.client;
    let names = client.get("/schemas/aap").await.expect(200);
    assert_eq!(client.get("/schemas/aap/").await.expect(200), names);
    let index = client.get("/schemas/").await.expect(200);
    assert_eq!(client.get("/schemas").await.expect(200), index);
    let index = index["schemas"].as_array().unwrap();
    for name in names.as_array().unwrap() {
        assert!(index.contains(&json!(format!("aap/{}", name.as_str().unwrap()))), "{name}: {index:?}");
    }
    for name in index {
        let schema = client.get(&format!("/schemas/{}", name.as_str().unwrap())).await.expect(200);
        assert!(schema["$schema"].as_str().unwrap().contains("2020-12"), "{schema}");
    }
    let event = client.get("/schemas/aap/TurnEvent.json").await.expect(200);
    let event = jsonschema::validator_for(&event).unwrap();
    assert!(event.is_valid(&json!({})) && event.is_valid(&json!({ "delta": "x" })));
    assert!(!event.is_valid(&json!({ "foo": 1 })));
    let turn = client.get("/schemas/aap/PostTurn.json").await.expect(200);
    assert_eq!(turn["required"], json!(["messages"]));
    client.get("/schemas/aap/Nothing.json").await.expect_error(404, "not_found");
}
