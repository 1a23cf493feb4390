//! Requests that make no sense: 400 that names the field, and nothing has changed.

use petasos_net::Method;
use petasos_testkit::{Gate, Reply};
use serde_json::{Value, json};

use super::{App, call_ids, get_weather, says};

fn names(answer: &petasos_testkit::Answer, status: u16, field: &str) {
    let error = answer.body["error"].as_str().unwrap_or_default();
    assert_eq!(answer.status, status, "{field}: {}", answer.body);
    assert!(error.contains(field), "{field} is not in {error:?}");
}

#[tokio::test]
async fn sessions_that_cannot_be_made() {
    let option = json!({ "type": "select", "name": "lang", "options": ["en", "de"], "default": "en" });
    let app = App::with_agent(json!({ "options": [option] })).await;
    let agent = |fields: Value| {
        let mut agent = json!({ "name": app.agent });
        super::merge(&mut agent, fields);
        json!({ "agent": agent })
    };
    let with = |fields: Value| {
        let mut body = json!({ "agent": { "name": app.agent } });
        super::merge(&mut body, fields);
        body
    };
    let message = |message: Value| with(json!({ "messages": [message] }));
    let call = json!({ "type": "tool_use", "toolCallId": "c1", "name": "x", "input": {} });
    let mut nameless = get_weather();
    nameless["name"] = json!("get weather");
    for (body, field) in [
        (json!({}), "agent"),
        (json!({ "agent": {} }), "name"),
        (json!({ "agent": { "name": "nobody" } }), "agent.name"),
        (json!({ "agent": { "name": "no/body" } }), "agent.name"),
        (agent(json!({ "tools": [{ "name": "fly" }] })), "agent.tools[0].name"),
        (agent(json!({ "tools": [{ "name": "todo" }, { "name": "todo" }] })), "agent.tools[1].name"),
        (agent(json!({ "tools": [{ "name": "todo", "trust": "yes" }] })), "agent.tools[0].trust"),
        (agent(json!({ "options": { "tone": "kind" } })), "agent.options.tone"),
        (agent(json!({ "options": { "lang": "fr" } })), "agent.options.lang"),
        (agent(json!({ "options": { "lang": 5 } })), "agent.options.lang"),
        (with(json!({ "tools": [get_weather(), get_weather()] })), "tools[1].name"),
        (with(json!({ "tools": [nameless] })), "tools[0].name"),
        (with(json!({ "tools": [{ "name": "x", "description": "" }] })), "parameters"),
        (with(json!({ "messages": "hello" })), "messages"),
        (message(json!({ "role": "narrator", "content": "x" })), "messages[0]"),
        (message(json!({ "role": "tool_permission", "toolCallId": "c1", "granted": true })), "messages[0]"),
        (message(json!({ "role": "user" })), "messages[0]"),
        (message(json!({ "role": "user", "content": 5 })), "messages[0]"),
        (message(json!({ "role": "user", "content": [] })), "messages[0].content"),
        (message(json!({ "role": "user", "content": [{ "type": "video" }] })), "messages[0]"),
        (message(json!({ "role": "user", "content": [call] })), "messages[0].content[0].type"),
        (
            message(json!({ "role": "user", "content": [{ "type": "image", "url": "ftp://x" }] })),
            "messages[0].content[0].url",
        ),
        (message(json!({ "role": "tool", "toolCallId": "c1", "content": "x" })), "messages[0].toolCallId"),
        (
            with(
                json!({ "messages": [{ "role": "assistant", "content": [call] }, { "role": "user", "content": "x" }] }),
            ),
            "messages[1]",
        ),
        (
            message(json!({ "role": "assistant", "content": [call, call] })),
            "messages[0].content[1].toolCallId",
        ),
        (
            message(
                json!({ "role": "assistant", "content": [{ "type": "image", "url": "https://x.example/a" }] }),
            ),
            "messages[0].content[0].type",
        ),
    ] {
        names(&app.post_session(body.clone()).await, 400, field);
    }
    let both = json!({ "agent": { "name": app.agent, "tools": [{ "name": "web_search" }] }, "tools": [
        { "name": "web_search", "description": "mine", "parameters": { "type": "object" } },
    ] });
    names(&app.post_session(both).await, 400, "tools[0].name");
    let listed = app.server.client.get("/aap/sessions").await.expect(200);
    assert_eq!(listed["sessions"], json!([]));
}

#[tokio::test]
async fn turns_that_cannot_be_run() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let calls = [("web_search", json!({})), ("get_weather", json!({}))];
    app.server.model.script([Reply::tool_calls(calls), Reply::text("Done.")]);
    let ids = call_ids(&app.turn(&session, says("go")).await);
    let result = |id: &str| json!({ "role": "tool", "toolCallId": id, "content": "x" });
    let granted = |id: &str| json!({ "role": "tool_permission", "toolCallId": id, "granted": true });
    let messages = |messages: Value| json!({ "messages": messages });
    let before = (app.history(&session, "full").await, app.info(&session).await);
    for (body, field) in [
        (json!({}), "messages"),
        (messages(json!([])), "messages"),
        (messages(json!([{ "role": "user", "content": " " }])), "messages"),
        (messages(json!([{ "role": "system", "content": "x" }])), "messages[0]"),
        (messages(json!([{ "role": "assistant", "content": "x" }])), "messages[0]"),
        (messages(json!([result(&ids[0])])), &ids[1]),
        (messages(json!([result(&ids[0]), { "role": "user", "content": "x" }])), &ids[1]),
        (messages(json!([result(&ids[0]), result(&ids[1]), result(&ids[1])])), "messages[2].toolCallId"),
        (messages(json!([result(&ids[0]), result("call_x")])), "messages[1].toolCallId"),
        (messages(json!([granted(&ids[0]), granted(&ids[1])])), "messages[1]"),
        (messages(json!([{ "role": "tool_permission", "toolCallId": ids[0] }])), "messages[0]"),
        (json!({ "stream": "loud", "messages": says("x") }), "stream"),
        (json!({ "agent": { "name": "other" }, "messages": says("x") }), "agent.name"),
        (json!({ "agent": { "tools": [{ "name": "fly" }] }, "messages": says("x") }), "agent.tools[0].name"),
        (json!({ "agent": { "options": { "tone": "x" } }, "messages": says("x") }), "agent.options.tone"),
        (json!({ "tools": [get_weather(), get_weather()], "messages": says("x") }), "tools[1].name"),
    ] {
        for mode in ["none", "delta"] {
            let mut body = body.clone();
            if body.get("stream").is_none() {
                body["stream"] = json!(mode);
            }
            names(&app.post_turn(&session, body).await, 400, field);
        }
    }
    for bytes in ["{", "[]", "nonsense", "{\"messages\": []} x"] {
        let path = format!("/aap/sessions/{session}/turns");
        let answer = app.server.client.send(Method::Post, &path, Some(bytes.into())).await;
        names(&answer, 400, "body: ");
    }
    for query in ["", "?type=", "?type=short"] {
        let answer = app.server.client.get(&format!("/aap/sessions/{session}/history{query}")).await;
        names(&answer, 400, "type");
    }
    assert_eq!(
        (app.history(&session, "full").await, app.info(&session).await),
        before,
        "nothing has changed"
    );
    app.turn(&session, json!([granted(&ids[0]), result(&ids[1])])).await;
    // What was answered is not pending any more.
    names(&app.post_turn(&session, messages(json!([result(&ids[1])]))).await, 400, "messages[0].toolCallId");
}

#[tokio::test]
async fn a_second_turn_while_one_runs_is_a_conflict_that_names_it() {
    let app = App::start().await;
    let session = app.session().await;
    let gate = Gate::new();
    app.server.model.script([Reply::text("one ").gate(&gate).and_text("two")]);
    let path = format!("/aap/sessions/{session}/turns");
    let body = json!({ "stream": "delta", "messages": says("go") });
    let mut running = app.server.client.post_stream(&path, body).await;
    running.until(|frame| frame.event == "text_delta").await;
    for mode in ["none", "message", "delta"] {
        let body =
            json!({ "stream": mode, "messages": says("me too"), "agent": { "tools": [{ "name": "todo" }] } });
        let answer = app.post_turn(&session, body).await;
        names(&answer, 409, "evt_");
        assert_eq!(answer.should_retry.as_deref(), Some("false"));
    }
    gate.open();
    running.until(|frame| frame.event == "turn_stop").await;
    assert_eq!(app.info(&session).await["agent"]["tools"], json!([]), "a refused turn changes nothing");
    assert_eq!(app.history(&session, "full").await.as_array().unwrap().len(), 2);
}
