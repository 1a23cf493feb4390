//! One session over two surfaces: the same facts in the same order.

use petasos_testkit::Reply;
use serde_json::json;

use super::{App, call_ids, says};

#[tokio::test]
async fn everything_is_seen_over_the_other_surface() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let mut watching = app.server.client.stream(&session, "?after=0").await;
    let calls = [("web_search", json!({})), ("get_weather", json!({}))];
    app.server.model.script([Reply::text("Let me see.").and_tool_calls(calls), Reply::text("Cloudy.")]);
    let ids = call_ids(&app.turn(&session, says("go")).await);
    let answers = json!([
        { "role": "tool_permission", "toolCallId": ids[0], "granted": true },
        { "role": "tool", "toolCallId": ids[1], "content": "Rain" },
    ]);
    app.turn(&session, answers).await;
    let mut seen = watching.until_idle().await;
    seen.extend(watching.until_idle().await);
    let durable: Vec<&str> =
        seen.iter().filter(|frame| frame.id.is_some()).map(|frame| frame.event.as_str()).collect();
    assert_eq!(
        durable,
        [
            "user.message",
            "session.status_running",
            "agent.message",
            "agent.tool_use",
            "agent.custom_tool_use",
            "session.status_idle",
            "user.tool_confirmation",
            "user.custom_tool_result",
            "session.status_running",
            "agent.tool_result",
            "agent.message",
            "session.status_idle",
        ]
    );
    let use_of = |event: &str, field: &str| {
        let frame = seen.iter().find(|frame| frame.event == event).unwrap();
        frame.data["payload"][field].as_str().unwrap().to_owned()
    };
    assert_eq!(use_of("agent.tool_use", "id"), ids[0], "one id on every surface");
    assert_eq!(use_of("agent.custom_tool_use", "id"), ids[1]);
}

#[tokio::test]
async fn an_answer_over_the_other_surface_is_in_the_history() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({})), Reply::text("Rain.")]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    let mut watching = app.server.client.stream(&session, "").await;
    let content = json!([{ "type": "text", "text": "Rain" }]);
    let result = json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": content });
    app.server.client.event(&session, result).await.expect(200);
    watching.until_idle().await;
    let history = app.history(&session, "full").await;
    assert_eq!(history[2], json!({ "role": "tool", "toolCallId": id, "content": "Rain" }));
    let late = json!([{ "role": "tool", "toolCallId": id, "content": "Sun" }]);
    assert_eq!(app.post_turn(&session, json!({ "messages": late })).await.status, 400);
}

#[tokio::test]
async fn steering_is_part_of_the_history() {
    let app = App::start().await;
    let session = app.session().await;
    app.server
        .client
        .event(&session, json!({ "type": "user.steer", "message": "be brief" }))
        .await
        .expect(200);
    app.server.model.script([Reply::text("Yes.")]);
    app.turn(&session, says("go")).await;
    let history = app.history(&session, "full").await;
    let said: Vec<&str> =
        history.as_array().unwrap().iter().map(|entry| entry["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["go", "be brief", "Yes."]);
}
