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
async fn who_waits_for_a_turn_when_the_server_stops_is_told_that_it_was_taken() {
    let app = App::start().await;
    let session = app.session().await;
    let gate = Gate::new();
    app.server.model.script([Reply::text("one ").gate(&gate), Reply::text("one two")]);
    let (client, path) = (app.server.client.clone(), format!("/aap/sessions/{session}/turns"));
    let waiting = tokio::spawn(async move { client.post(&path, json!({ "messages": says("go") })).await });
    gate.reached().await;
    // The model is called while the message is still on its way to the disk.
    let mut watching = app.server.client.stream(&session, "?after=0").await;
    watching.until(|frame| frame.event == "session.status_running").await;
    let app = App { server: app.server.restart().await, agent: app.agent };
    let answer = waiting.await.unwrap();
    assert_eq!(answer.should_retry.as_deref(), Some("false"), "{}", answer.body);
    let problem = answer.expect(503)["error"].as_str().unwrap().to_owned();
    assert!(problem.contains("was taken") && problem.contains("history"), "{problem}");
    app.server.client.stream(&session, "?after=0").await.until_idle().await;
    assert_eq!(app.history(&session, "full").await.as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn deleting_a_session_ends_its_turn_with_an_error() {
    for mode in ["message", "delta"] {
        let app = App::start().await;
        let session = app.session().await;
        let gate = Gate::new();
        app.server.model.script([Reply::text("one ").gate(&gate)]);
        let path = format!("/aap/sessions/{session}/turns");
        let body = json!({ "stream": mode, "messages": says("go") });
        let mut stream = app.server.client.post_stream(&path, body).await;
        gate.reached().await;
        assert_eq!(app.server.client.delete(&format!("/aap/sessions/{session}")).await.status, 204);
        let last = stream.until(|frame| frame.event == "turn_stop").await;
        assert_eq!(last.last().unwrap().data, json!({ "stopReason": "error" }), "{mode}");
        assert!(stream.next().await.is_none(), "{last:?}");
    }
}

#[tokio::test]
async fn deleting_a_session_answers_who_waits_for_its_turn_with_an_error() {
    let app = App::start().await;
    let session = app.session().await;
    let gate = Gate::new();
    app.server.model.script([Reply::text("one ").gate(&gate)]);
    let (client, path) = (app.server.client.clone(), format!("/aap/sessions/{session}/turns"));
    let waiting = tokio::spawn(async move { client.post(&path, json!({ "messages": says("go") })).await });
    gate.reached().await;
    assert_eq!(app.server.client.delete(&format!("/aap/sessions/{session}")).await.status, 204);
    assert_eq!(waiting.await.unwrap().expect(200)["stopReason"], "error");
}
