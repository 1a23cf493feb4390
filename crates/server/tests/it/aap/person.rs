//! A person who answers beside the agent, or in its place.

use petasos_testkit::{Reply, within};
use serde_json::{Value, json};

use super::{App, call_ids, says};

async fn mode(app: &App, session: &str, mode: &str) {
    let path = format!("/conversation/sessions/{session}");
    app.server.client.patch(&path, json!({ "mode": mode })).await.expect(200);
}

async fn person_says(app: &App, session: &str, text: &str) {
    let said = json!({ "kind": "human_agent_message", "text": text, "author": "Ann" });
    app.server.client.post(&format!("/conversation/sessions/{session}/events"), said).await.expect(201);
}

#[tokio::test]
async fn a_message_while_a_person_answers_is_kept_and_the_turn_stops_at_once() {
    let app = App::start().await;
    let session = app.session().await;
    mode(&app, &session, "manual").await;
    let kept = json!({ "stopReason": "end_turn", "messages": [] });
    assert_eq!(within("an answer", app.turn(&session, says("one"))).await, kept);
    for stream in ["message", "delta"] {
        let shown = within("an answer", app.stream(&session, stream, says(stream))).await;
        let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["turn_start", "turn_stop"]);
        assert_eq!(shown[1].1, json!({ "stopReason": "end_turn" }));
    }
    assert!(app.server.model.requests().is_empty(), "the agent stays silent");
    mode(&app, &session, "auto").await;
    app.server.model.script([Reply::text("Hello all.")]);
    let body = app.turn(&session, says("two")).await;
    assert_eq!(body["messages"], json!([{ "role": "assistant", "content": "Hello all." }]));
    let history = app.history(&session, "full").await;
    let said: Vec<&Value> = history.as_array().unwrap().iter().map(|entry| &entry["content"]).collect();
    assert_eq!(said, ["one", "message", "delta", "two", "Hello all."]);
}

#[tokio::test]
async fn who_takes_over_ends_the_pause_and_the_next_message_is_theirs() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({}))]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    mode(&app, &session, "manual").await;
    let answer = json!({ "messages": [{ "role": "tool", "toolCallId": id, "content": "Rain" }] });
    app.post_turn(&session, answer).await.expect(400);
    let kept = json!({ "stopReason": "end_turn", "messages": [] });
    assert_eq!(within("an answer", app.turn(&session, says("never mind"))).await, kept);
}

#[tokio::test]
async fn what_a_person_says_is_in_both_histories_and_never_between_a_call_and_its_result() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({})), Reply::text("Rain.")]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    person_says(&app, &session, "It rains here.").await;
    let waiting = app.history(&session, "full").await;
    assert_eq!(call_ids(&waiting[1])[0], id, "{waiting}");
    app.turn(&session, json!([{ "role": "tool", "toolCallId": id, "content": "Rain" }])).await;
    person_says(&app, &session, "Told you.").await;
    let (full, compacted) = (app.history(&session, "full").await, app.history(&session, "compacted").await);
    let roles: Vec<&Value> = full.as_array().unwrap().iter().map(|entry| &entry["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user", "assistant", "user"], "{full}");
    assert!(full[3]["content"].as_str().unwrap().ends_with("It rains here."), "{full}");
    assert!(full[5]["content"].as_str().unwrap().contains("Ann"), "{full}");
    assert_eq!(full, compacted);
}
