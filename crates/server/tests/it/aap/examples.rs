//! The examples of the protocol's response page, from outside: bodies field by field, streams frame by frame.

use petasos_core::model::Stop;
use petasos_testkit::Reply;
use serde_json::json;

use super::{App, WEATHER, call_ids, frames, normal, says};

const ANSWER: &str = "The weather in Tokyo is 18°C, partly cloudy.";
const QUESTION: &str = "What's the weather in Tokyo?";

#[tokio::test]
async fn a_normal_response_in_deltas() {
    let app = App::start().await;
    let session = app.session().await;
    app.server.model.script([Reply::text(ANSWER)]);
    let mut shown = app.stream(&session, "delta", says(QUESTION)).await;
    assert_eq!(shown.remove(0), ("turn_start".to_owned(), json!({})));
    assert_eq!(shown.pop(), Some(("turn_stop".to_owned(), json!({ "stopReason": "end_turn" }))));
    assert!(shown.iter().all(|(name, data)| name == "text_delta" && data.as_object().unwrap().len() == 1));
    let text: String = shown.iter().map(|(_, data)| data["delta"].as_str().unwrap()).collect();
    assert_eq!(text, ANSWER);
}

#[tokio::test]
async fn a_client_side_tool_call_in_messages() {
    let app = App::start().await;
    let session = app.session_with_tools(true).await;
    app.server
        .model
        .script([Reply::tool_call("get_weather", json!({ "location": "Tokyo" })), Reply::text(ANSWER)]);
    let first = app.stream(&session, "message", says(QUESTION)).await;
    let id = first[1].1["toolCallId"].clone();
    assert_eq!(
        frames(first),
        json!([
            ["turn_start", {}],
            ["tool_call", { "toolCallId": "call_1", "name": "get_weather", "input": { "location": "Tokyo" } }],
            ["turn_stop", { "stopReason": "tool_use" }],
        ])
    );
    let result = json!([{ "role": "tool", "toolCallId": id, "content": WEATHER }]);
    assert_eq!(
        frames(app.stream(&session, "message", result).await),
        json!([["turn_start", {}], ["text", { "text": ANSWER }], ["turn_stop", { "stopReason": "end_turn" }]])
    );
}

#[tokio::test]
async fn a_trusted_server_side_tool_call_runs_inline() {
    let app = App::start().await;
    let session = app.session_with_tools(true).await;
    let query = json!({ "query": "Tokyo weather today" });
    app.server.model.script([Reply::tool_call("web_search", query.clone()), Reply::text("Cloudy.")]);
    assert_eq!(
        frames(app.stream(&session, "delta", says(QUESTION)).await),
        json!([
            ["turn_start", {}],
            ["tool_call", { "toolCallId": "call_1", "name": "web_search", "input": query }],
            ["tool_result", { "toolCallId": "call_1", "content": WEATHER }],
            ["text_delta", { "delta": "Cloudy." }],
            ["turn_stop", { "stopReason": "end_turn" }],
        ])
    );
}

#[tokio::test]
async fn a_normal_json_response() {
    let app = App::start().await;
    let session = app.session().await;
    app.server.model.script([Reply::text(ANSWER)]);
    assert_eq!(
        app.turn(&session, says(QUESTION)).await,
        json!({ "stopReason": "end_turn", "messages": [{ "role": "assistant", "content": ANSWER }] })
    );
}

#[tokio::test]
async fn a_json_response_with_thinking() {
    let app = App::start().await;
    let session = app.session().await;
    let thought = "The user wants Tokyo weather. I should use the get_weather tool.";
    app.server.model.script([Reply::thinking(thought).and_text(ANSWER)]);
    assert_eq!(
        app.turn(&session, says(QUESTION)).await,
        json!({ "stopReason": "end_turn", "messages": [{ "role": "assistant", "content": [
            { "type": "thinking", "thinking": thought },
            { "type": "text", "text": ANSWER },
        ] }] })
    );
}

#[tokio::test]
async fn a_json_response_when_a_client_side_tool_is_needed() {
    let app = App::start().await;
    let session = app.session_with_tools(true).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({ "location": "Tokyo" }))]);
    let call = json!({
        "type": "tool_use", "toolCallId": "call_1", "name": "get_weather", "input": { "location": "Tokyo" },
    });
    assert_eq!(
        normal(app.turn(&session, says(QUESTION)).await),
        json!({ "stopReason": "tool_use", "messages": [{ "role": "assistant", "content": [call] }] })
    );
}

#[tokio::test]
async fn a_json_response_with_a_trusted_tool_holds_the_whole_exchange() {
    let app = App::start().await;
    let session = app.session_with_tools(true).await;
    let query = json!({ "query": "Tokyo weather today" });
    app.server.model.script([Reply::tool_call("web_search", query.clone()), Reply::text(ANSWER)]);
    let call = json!({ "type": "tool_use", "toolCallId": "call_1", "name": "web_search", "input": query });
    assert_eq!(
        normal(app.turn(&session, says(QUESTION)).await),
        json!({ "stopReason": "end_turn", "messages": [
            { "role": "assistant", "content": [call] },
            { "role": "tool", "toolCallId": "call_1", "content": WEATHER },
            { "role": "assistant", "content": ANSWER },
        ] })
    );
}

#[tokio::test]
async fn a_json_response_after_a_granted_permission_starts_with_the_result() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text(ANSWER)]);
    let stopped = app.turn(&session, says(QUESTION)).await;
    assert_eq!(stopped["stopReason"], "tool_use");
    let id = call_ids(&stopped).remove(0);
    let permission = json!([{ "role": "tool_permission", "toolCallId": id, "granted": true }]);
    assert_eq!(
        app.turn(&session, permission).await,
        json!({ "stopReason": "end_turn", "messages": [
            { "role": "tool", "toolCallId": id, "content": WEATHER },
            { "role": "assistant", "content": ANSWER },
        ] })
    );
}

#[tokio::test]
async fn a_denied_permission_is_told_to_the_model_with_and_without_reason() {
    for (reason, told) in
        [(Some("User declined"), "Tool call denied: User declined"), (None, "Tool call denied")]
    {
        let app = App::start().await;
        let session = app.session_with_tools(false).await;
        app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text("A pity.")]);
        let id = call_ids(&app.turn(&session, says(QUESTION)).await).remove(0);
        let mut permission = json!({ "role": "tool_permission", "toolCallId": id, "granted": false });
        if let Some(reason) = reason {
            permission["reason"] = json!(reason);
        }
        let shown = app.stream(&session, "message", json!([permission])).await;
        assert_eq!(
            frames(shown),
            json!([
                ["turn_start", {}],
                ["tool_result", { "toolCallId": "call_1", "content": told }],
                ["text", { "text": "A pity." }],
                ["turn_stop", { "stopReason": "end_turn" }],
            ])
        );
        let request = app.server.model.requests().pop().unwrap();
        let result = request.body["messages"].as_array().unwrap().last().unwrap().clone();
        assert!(result["content"].as_str().unwrap().contains(told), "{result}");
        let history = app.history(&session, "full").await;
        assert_eq!(history[2], json!({ "role": "tool", "toolCallId": id, "content": told }));
        assert!(!history.to_string().contains("tool_permission"), "{history}");
    }
}

#[tokio::test]
async fn every_stop_reason() {
    let app = App::start().await;
    for (reply, reason) in [
        (Reply::text("Done."), "end_turn"),
        (Reply::text("And so o").stop(Stop::MaxTokens), "max_tokens"),
        (Reply::text("No.").stop(Stop::Refusal), "refusal"),
        (Reply::status(401), "error"),
    ] {
        for mode in ["none", "message", "delta"] {
            let session = app.session().await;
            app.server.model.script([reply.clone()]);
            let stopped = if mode == "none" {
                app.turn(&session, says("go")).await["stopReason"].clone()
            } else {
                let shown = app.stream(&session, mode, says("go")).await;
                let stops = shown.iter().filter(|(name, _)| name == "turn_stop").count();
                assert_eq!(stops, 1, "{shown:?}");
                shown.last().unwrap().1["stopReason"].clone()
            };
            assert_eq!(stopped, reason, "{mode}");
            // Whatever happened, the session takes the next turn.
            app.server.model.script([Reply::text("Well.")]);
            assert_eq!(app.turn(&session, says("and now?")).await["stopReason"], "end_turn");
        }
    }
}

#[tokio::test]
async fn a_conversation_that_never_fits_stops_with_max_tokens() {
    let app = App::start().await;
    let session = app.session().await;
    // Whatever is done about it, it stays too long.
    let too_long = Reply::status(400).message("prompt is too long: context length exceeded");
    app.server.model.script(std::iter::repeat_n(too_long, 20));
    assert_eq!(app.turn(&session, says("go")).await["stopReason"], "max_tokens");
}
