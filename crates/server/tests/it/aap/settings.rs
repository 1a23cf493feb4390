//! What a session sets: it is kept, overrides persist, and secrets are seen by tools alone.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::{App, WEATHER, backwards, get_weather, says};

fn options() -> Value {
    json!([
        { "type": "text", "name": "tone", "default": "kind" },
        { "type": "select", "name": "lang", "options": ["en", "de"], "default": "en" },
        { "type": "secret", "name": "API_KEY", "default": "" },
    ])
}

async fn app() -> App {
    let instructions =
        "Be {{options.tone}} in {{options.lang}}. Keep {{options.API_KEY}} and {{options.other}}.";
    App::with_agent(json!({ "options": options(), "instructions": instructions })).await
}

fn system(app: &App) -> Value {
    app.server.model.requests().pop().unwrap().body["messages"][0]["content"].clone()
}

#[tokio::test]
async fn options_fill_the_instructions_and_overrides_persist() {
    let app = app().await;
    let session = app.session_with(json!({ "options": { "lang": "de" } }), json!({})).await;
    let turn = async |body: Value| {
        app.server.model.script([Reply::text("Hm.")]);
        let mut body = body;
        body["messages"] = says("go");
        app.post_turn(&session, body).await.expect(200);
        system(&app)
    };
    assert_eq!(turn(json!({})).await, "Be kind in de. Keep $API_KEY and {{options.other}}.");
    let changed = turn(json!({ "agent": { "options": { "tone": "harsh" } } })).await;
    assert_eq!(changed, "Be harsh in de. Keep $API_KEY and {{options.other}}.");
    let reset = turn(json!({ "agent": { "name": app.agent, "options": { "tone": "kind" } } })).await;
    assert_eq!(reset, "Be kind in de. Keep $API_KEY and {{options.other}}.");
    assert_eq!(turn(json!({})).await, reset);
    assert_eq!(
        app.info(&session).await["agent"]["options"],
        json!({ "tone": "kind", "lang": "de", "API_KEY": "" })
    );
}

#[tokio::test]
async fn options_can_be_changed_with_the_agent_and_sessions_stay_with_their_version() {
    let app = app().await;
    let session = app.session().await;
    let patch = json!({ "options": [{ "type": "text", "name": "mood", "default": "good" }] });
    let changed = app.server.client.patch(&format!("/v1/agents/{}", app.agent), patch).await.expect(200);
    assert_eq!(changed["options"][0]["name"], "mood");
    let options = app.info(&session).await["agent"]["options"].clone();
    assert_eq!(options.as_object().unwrap().keys().collect::<Vec<_>>(), ["API_KEY", "lang", "tone"]);
    let twice = json!({ "options": [{ "type": "text", "name": "a" }, { "type": "text", "name": "a" }] });
    let refused = app.server.client.patch(&format!("/v1/agents/{}", app.agent), twice).await;
    assert_eq!(refused.expect_error(400, "validation_error")["field"], "options[1].name");
}

#[tokio::test]
async fn lists_of_tools_are_replaced_whole() {
    let app = app().await;
    let session = app.session_with_tools(false).await;
    let info = app.info(&session).await;
    assert_eq!(info["sessionId"], session.as_str());
    assert_eq!(info["agent"]["name"], app.agent.as_str());
    assert_eq!(info["agent"]["tools"], json!([{ "name": "web_search", "trust": false }]));
    assert_eq!(info["tools"], json!([get_weather()]));

    app.server.model.script([Reply::text("Hm.")]);
    let body = json!({ "messages": says("go"), "agent": { "tools": [{ "name": "todo", "trust": true }] }, "tools": [] });
    app.post_turn(&session, body).await.expect(200);
    let info = app.info(&session).await;
    assert_eq!(
        (&info["agent"]["tools"], &info["tools"]),
        (&json!([{ "name": "todo", "trust": true }]), &json!([]))
    );
    let offered = app.server.model.requests().pop().unwrap().body["tools"].clone();
    let names: Vec<&str> =
        offered.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["todo"]);
}

#[tokio::test]
async fn a_secret_reaches_tools_and_nobody_else() {
    let app = app().await;
    let secret = "s3cr3t-value";
    let agent =
        json!({ "tools": [{ "name": "web_search", "trust": true }], "options": { "API_KEY": secret } });
    let session = app.session_with(agent, json!({})).await;
    let search = || [Reply::tool_call("web_search", json!({})), Reply::text("Done.")];
    app.server.model.script(search());
    let body = app.turn(&session, says("go")).await;
    let shown = format!("{WEATHER} API_KEY={}", backwards(secret));
    assert_eq!(body["messages"][1]["content"], shown, "the tool has it");

    // It is shown covered, and whoever sends the cover back changes nothing.
    assert_eq!(app.info(&session).await["agent"]["options"]["API_KEY"], "***");
    let listed = app.server.client.get("/aap/sessions").await.expect(200);
    assert_eq!(listed["sessions"][0]["agent"]["options"]["API_KEY"], "***");
    app.server.model.script(search());
    let echo = json!({ "messages": says("go"), "agent": { "options": { "API_KEY": "***" } } });
    let body = app.post_turn(&session, echo).await.expect(200);
    assert_eq!(body["messages"][1]["content"], shown);

    let other = json!({ "messages": says("go"), "agent": { "options": { "API_KEY": "another" } } });
    app.server.model.script(search());
    let body = app.post_turn(&session, other).await.expect(200);
    assert_eq!(body["messages"][1]["content"], format!("{WEATHER} API_KEY={}", backwards("another")));
    assert!(!system(&app).to_string().contains("another"));
}

#[tokio::test]
async fn no_default_takes_the_place_of_a_secret_that_a_restart_has_lost() {
    let options = json!([{ "type": "secret", "name": "API_KEY", "default": "d3fault-value" }]);
    let app = App::with_agent(json!({ "options": options })).await;
    let secret = json!({ "API_KEY": "s3cr3t-value" });
    let agent = json!({ "tools": [{ "name": "web_search", "trust": true }], "options": secret });
    let session = app.session_with(agent, json!({})).await;

    let app = App { server: app.server.restart().await, agent: app.agent };
    let search = || [Reply::tool_call("web_search", json!({})), Reply::text("Done.")];
    app.server.model.script(search());
    assert_eq!(app.turn(&session, says("go")).await["messages"][1]["content"], WEATHER);
    app.server.model.script(search());
    let again = json!({ "messages": says("go"), "agent": { "options": secret } });
    let body = app.post_turn(&session, again).await.expect(200);
    let shown = format!("{WEATHER} API_KEY={}", backwards("s3cr3t-value"));
    assert_eq!(body["messages"][1]["content"], shown);
}

#[tokio::test]
async fn a_secret_is_in_no_log() {
    let app = app().await;
    let secret = "s3cr3t-value-that-no-file-may-hold";
    let agent = json!({ "options": { "API_KEY": secret } });
    let session = app.session_with(agent, json!({})).await;
    app.server.model.script([Reply::text("Done.")]);
    let body =
        json!({ "messages": says("go"), "agent": { "options": { "API_KEY": format!("{secret}-2") } } });
    app.post_turn(&session, body).await.expect(200);
    let exported = app.server.client.get(&format!("/v1/sessions/{session}/export")).await;
    assert_eq!(exported.status, 200);
    for file in std::fs::read_dir(app.server.home()).unwrap().map(|entry| entry.unwrap().path()) {
        if file.is_file() {
            let bytes = std::fs::read(&file).unwrap();
            let found = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!found, "{} holds it", file.display());
        }
    }
}

#[tokio::test]
async fn a_session_made_elsewhere_has_its_agents_tools_and_policies() {
    let app = App::start().await;
    let session = app.server.client.session(&app.agent).await;
    let info = app.info(&session).await;
    let tools = info["agent"]["tools"].as_array().unwrap();
    let trust = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["trust"].clone();
    assert_eq!((trust("todo"), trust("web_search")), (json!(true), json!(false)));
    app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text("Done.")]);
    assert_eq!(app.turn(&session, says("go")).await["stopReason"], "tool_use");
    // The application may bring tools of its own all the same.
    let body = json!({ "messages": says("again"), "tools": [get_weather()] });
    app.post_turn(&session, body).await.expect(200);
    let info = app.info(&session).await;
    assert_eq!(info["tools"], json!([get_weather()]));
    assert_eq!(info["agent"]["tools"].as_array().unwrap().len(), tools.len());
}

#[tokio::test]
async fn null_is_as_good_as_left_out() {
    let app = App::start().await;
    let body = json!({
        "agent": { "name": app.agent, "tools": null, "options": null }, "messages": null, "tools": null,
    });
    let session = app.post_session(body).await.expect(201)["sessionId"].as_str().unwrap().to_owned();
    let mut body = json!({
        "agent": { "tools": [{ "name": "todo", "trust": null }] }, "stream": null, "tools": null,
        "messages": says("go"),
    });
    assert_eq!(app.post_turn(&session, body.clone()).await.expect(200)["stopReason"], "end_turn");
    body["agent"] = json!({ "name": null, "tools": null, "options": null });
    app.post_turn(&session, body).await.expect(200);
    let tools = app.info(&session).await["agent"]["tools"].clone();
    assert_eq!(tools, json!([{ "name": "todo", "trust": false }]), "what is left out stays as it is");
}

#[tokio::test]
async fn a_session_made_elsewhere_shows_which_tools_the_application_runs() {
    let app = App::start().await;
    let session = app.server.session_with_custom_tool().await;
    app.server.model.script([Reply::tool_call("check_order", json!({})), Reply::text("It is there.")]);
    let stopped = app.turn(&session, says("go")).await;
    let info = app.info(&session).await;
    assert_eq!(info["tools"][0]["name"], stopped["messages"][0]["content"][0]["name"], "{info}");
    assert_eq!(info["tools"][0]["description"], "Looks up an order.");
    // A list of its own tools replaces the agent's.
    let id = super::call_ids(&stopped).remove(0);
    let answer = json!([{ "role": "tool", "toolCallId": id, "content": "here" }]);
    let body = json!({ "agent": { "tools": [] }, "messages": answer });
    app.post_turn(&session, body).await.expect(200);
    assert_eq!(app.info(&session).await["tools"], json!([]));
}

#[tokio::test]
async fn tools_that_a_session_shows_can_be_sent_back() {
    let custom = json!({ "type": "custom_tool", "name": "check_order", "description": "Looks up an order.", "inputSchema": { "type": "object" } });
    let app = App::with_agent(json!({ "tools": [{ "type": "agent_toolset" }, custom] })).await;
    let session = app.server.client.session(&app.agent).await;
    let mut tools = app.info(&session).await["tools"].as_array().unwrap().clone();
    tools[0]["description"] = json!("Looks up an order, and says when it comes.");
    tools.push(get_weather());
    for _ in 0..2 {
        app.server.model.script([Reply::text("Hm.")]);
        app.post_turn(&session, json!({ "messages": says("go"), "tools": tools })).await.expect(200);
        assert_eq!(app.info(&session).await["tools"], json!(tools));
    }
    let offered = app.server.model.requests().pop().unwrap().body["tools"].clone();
    let named = |name: &str| {
        let offered = offered.as_array().unwrap().iter().map(|tool| &tool["function"]);
        offered
            .filter(|tool| tool["name"] == name)
            .map(|tool| tool["description"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(named("check_order"), [tools[0]["description"].clone()]);
    assert_eq!(named("get_weather").len(), 1);
    // A tool that the server runs keeps its name to itself.
    tools[1]["name"] = json!("todo");
    let refused = app.post_turn(&session, json!({ "messages": says("go"), "tools": tools })).await;
    assert!(refused.expect(400)["error"].as_str().unwrap().contains("tools[1].name"));
}
