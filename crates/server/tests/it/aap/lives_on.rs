//! A turn belongs to its session: it outlives the connection, and a pause outlives the server.

use petasos_testkit::{Gate, Reply};
use serde_json::json;

use super::{App, WEATHER, call_ids, says};

#[tokio::test]
async fn who_goes_away_finds_the_turn_in_the_history() {
    for mode in ["none", "delta"] {
        let app = App::start().await;
        let session = app.session().await;
        let gate = Gate::new();
        app.server.model.script([Reply::text("one ").gate(&gate).and_text("two")]);
        let path = format!("/aap/sessions/{session}/turns");
        let body = json!({ "stream": mode, "messages": says("go") });
        if mode == "none" {
            let client = app.server.client.clone();
            let waiting = tokio::spawn(async move { client.post(&path, body).await });
            gate.reached().await;
            waiting.abort();
        } else {
            let mut stream = app.server.client.post_stream(&path, body).await;
            stream.until(|frame| frame.event == "text_delta").await;
        }
        let mut watching = app.server.client.stream(&session, "?after=0").await;
        gate.open();
        watching.until_idle().await;
        let history = app.history(&session, "full").await;
        assert_eq!(history[1], json!({ "role": "assistant", "content": "one two" }), "{mode}");
    }
}

#[tokio::test]
async fn a_restart_in_a_pause_loses_nothing() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let calls = [("web_search", json!({})), ("get_weather", json!({ "location": "Tokyo" }))];
    app.server.model.script([Reply::text("Let me see.").and_tool_calls(calls), Reply::text("Cloudy.")]);
    let ids = call_ids(&app.turn(&session, says("go")).await);
    let before = (app.history(&session, "full").await, app.info(&session).await);

    let app = App { server: app.server.restart().await, agent: app.agent };
    let after = (app.history(&session, "full").await, app.info(&session).await);
    assert_eq!(after, before);
    // What is pending is read off the history: the calls without a tool message.
    let history = app.history(&session, "full").await;
    assert_eq!(call_ids(&history[1]), ids);
    let answers = json!([
        { "role": "tool_permission", "toolCallId": ids[0], "granted": true },
        { "role": "tool", "toolCallId": ids[1], "content": "Rain" },
    ]);
    assert_eq!(
        app.turn(&session, answers).await,
        json!({ "stopReason": "end_turn", "messages": [
            { "role": "tool", "toolCallId": ids[0], "content": WEATHER },
            { "role": "assistant", "content": "Cloudy." },
        ] })
    );
}

#[tokio::test]
async fn a_server_that_stops_ends_the_stream_and_goes_on_at_the_next_start() {
    let app = App::start().await;
    let session = app.session().await;
    let gate = Gate::new();
    app.server.model.script([Reply::text("one ").gate(&gate), Reply::text("one two")]);
    let path = format!("/aap/sessions/{session}/turns");
    let body = json!({ "stream": "delta", "messages": says("go") });
    let mut stream = app.server.client.post_stream(&path, body).await;
    stream.until(|frame| frame.event == "text_delta").await;
    let restarting = app.server.restart();
    let (server, last) = tokio::join!(restarting, stream.until(|frame| frame.event == "turn_stop"));
    assert_eq!(last.last().unwrap().data, json!({ "stopReason": "error" }));
    let app = App { server, agent: app.agent };
    let mut watching = app.server.client.stream(&session, "?after=0").await;
    watching.until_idle().await;
    assert_eq!(app.history(&session, "full").await[1]["content"], "one two");
}

#[tokio::test]
async fn deleting_a_session_ends_its_turn() {
    let app = App::start().await;
    let session = app.session().await;
    let gate = Gate::new();
    app.server.model.script([Reply::text("one ").gate(&gate)]);
    let path = format!("/aap/sessions/{session}/turns");
    let body = json!({ "stream": "message", "messages": says("go") });
    let mut stream = app.server.client.post_stream(&path, body).await;
    gate.reached().await;
    assert_eq!(app.server.client.delete(&format!("/aap/sessions/{session}")).await.status, 204);
    let last = stream.until(|frame| frame.event == "turn_stop").await;
    assert!(stream.next().await.is_none(), "{last:?}");
}
