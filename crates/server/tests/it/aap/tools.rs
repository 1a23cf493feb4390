//! Calls: who carries them out, who is asked, and what becomes of them.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use super::{App, WEATHER, call_ids, frames, named, normal, says};

#[tokio::test]
async fn all_calls_of_a_step_come_before_any_result_and_are_answered_together() {
    let app = App::start().await;
    let tools = json!({ "tools": [{ "name": "web_search", "trust": true }, { "name": "todo" }] });
    let session = app.session_with(tools, json!({ "tools": [super::get_weather()] })).await;
    app.server.model.script([
        Reply::tool_calls([
            ("nothing", json!({})),
            ("web_search", json!({})),
            ("get_weather", json!({ "location": "Kyoto" })),
            ("todo", json!({ "todos": ["pack"] })),
        ]),
        Reply::text("Done."),
    ]);
    let shown = app.stream(&session, "delta", says("go")).await;
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    let calls = ["tool_call"; 4];
    assert_eq!(names, [&["turn_start"], &calls[..], &["tool_result"; 2], &["turn_stop"]].concat());
    assert_eq!(shown.last().unwrap().1["stopReason"], "tool_use");
    assert!(shown[5].1["content"].as_str().unwrap().contains("There is no tool nothing"), "{shown:?}");
    assert_eq!(shown[6].1["content"], WEATHER);

    // The history shows what is pending: the calls without a result.
    let pending: Vec<Value> = shown[3..5].iter().map(|(_, data)| data["toolCallId"].clone()).collect();
    for kind in ["full", "compacted"] {
        let history = app.history(&session, kind).await;
        let answered: Vec<&Value> =
            history.as_array().unwrap()[2..].iter().map(|tool| &tool["toolCallId"]).collect();
        assert_eq!(answered.len(), 2, "{history}");
        assert!(pending.iter().all(|id| !answered.contains(&id)), "{history}");
    }
    let answers = json!([
        { "role": "tool_permission", "toolCallId": pending[1], "granted": true },
        { "role": "tool", "toolCallId": pending[0], "content": "Rain" },
    ]);
    let body = app.turn(&session, answers).await;
    assert_eq!(
        body,
        json!({ "stopReason": "end_turn", "messages": [
            { "role": "tool", "toolCallId": pending[1], "content": "[ ] pack" },
            { "role": "assistant", "content": "Done." },
        ] }),
        "the application knows its own result"
    );
    let request = app.server.model.requests().pop().unwrap();
    let results: Vec<Value> = request.body["messages"].as_array().unwrap()[2..].to_vec();
    assert_eq!(results.len(), 4, "{results:?}");
    assert_eq!((&results[2]["content"], &results[3]["content"]), (&json!("Rain"), &json!("[ ] pack")));
}

#[tokio::test]
async fn trust_decides_in_place_of_the_agents_policies_both_ways() {
    let policy = |policy: &str| json!([{ "type": "agent_toolset", "defaultConfig": { "permissionPolicy": { "type": policy } } }]);
    for (of_agent, trust, stop) in [("always_ask", true, "end_turn"), ("always_allow", false, "tool_use")] {
        let app = App::with_agent(json!({ "tools": policy(of_agent) })).await;
        let session = app.session_with_tools(trust).await;
        app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text("Done.")]);
        assert_eq!(app.turn(&session, says("go")).await["stopReason"], stop, "{of_agent}");
    }
}

#[tokio::test]
async fn a_tool_that_is_off_is_not_offered_and_not_run() {
    let app = App::start().await;
    let session = app.session().await;
    app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text("I cannot.")]);
    let body = app.turn(&session, says("go")).await;
    assert_eq!(body["stopReason"], "end_turn");
    assert!(body["messages"][1]["content"].as_str().unwrap().contains("no tool web_search"), "{body}");
    let requests = app.server.model.requests();
    assert!(requests[0].body.get("tools").is_none(), "{}", requests[0].body);
}

#[tokio::test]
async fn a_result_for_a_tool_of_the_server_is_taken_without_running_it() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    app.server.model.script([Reply::tool_call("web_search", json!({})), Reply::text("I see.")]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    let result = json!([{ "role": "tool", "toolCallId": id, "content": "made up" }]);
    assert_eq!(
        app.turn(&session, result).await,
        json!({ "stopReason": "end_turn", "messages": [{ "role": "assistant", "content": "I see." }] })
    );
    assert_eq!(app.history(&session, "full").await[2]["content"], "made up");
}

#[tokio::test]
async fn a_message_in_place_of_answers_leaves_calls_not_executed() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let calls = [("web_search", json!({})), ("get_weather", json!({}))];
    app.server.model.script([Reply::tool_calls(calls), Reply::text("All right.")]);
    let stopped = app.turn(&session, says("go")).await;
    let mut seen = Default::default();
    named(stopped, &mut seen);
    let shown = app.stream(&session, "message", says("never mind")).await;
    let names: Vec<&str> = shown.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["turn_start", "tool_result", "tool_result", "text", "turn_stop"]);
    for (_, data) in &shown[1..3] {
        assert!(data["content"].as_str().unwrap().contains("not executed"), "{data}");
    }
    let history = named(app.history(&session, "full").await, &mut seen);
    let roles: Vec<&str> =
        history.as_array().unwrap().iter().map(|entry| entry["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user", "assistant"]);
    assert_eq!(history[4]["content"], "never mind");
}

#[tokio::test]
async fn a_message_with_answers_follows_the_results() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let calls = [("web_search", json!({})), ("get_weather", json!({}))];
    app.server.model.script([Reply::tool_calls(calls), Reply::text("All right.")]);
    let ids = call_ids(&app.turn(&session, says("go")).await);
    let messages = json!([
        { "role": "user", "content": "and be" },
        { "role": "tool", "toolCallId": ids[1], "content": "Rain" },
        { "role": "user", "content": "quick" },
        { "role": "tool_permission", "toolCallId": ids[0], "granted": true },
    ]);
    app.turn(&session, messages).await;
    let request = app.server.model.requests().pop().unwrap();
    let roles: Vec<&str> =
        request.body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(request.last_user_text(), "and be\n\nquick");
    let history = normal(app.history(&session, "full").await);
    assert_eq!(
        history.as_array().unwrap()[2..],
        [
            json!({ "role": "tool", "toolCallId": "call_2", "content": "Rain" }),
            json!({ "role": "tool", "toolCallId": "call_1", "content": WEATHER }),
            json!({ "role": "user", "content": "and be\n\nquick" }),
            json!({ "role": "assistant", "content": "All right." }),
        ]
    );
}

#[tokio::test]
async fn a_question_is_answered_by_a_tool_message_and_can_be_skipped() {
    let app = App::start().await;
    let tools = json!({ "tools": [{ "name": "clarify", "trust": true }] });
    let session = app.session_with(tools, json!({})).await;
    let question = json!({ "question": "Tea or coffee?", "choices": ["Tea", "Coffee"] });
    app.server.model.script([
        Reply::tool_call("clarify", question.clone()),
        Reply::tool_call("clarify", question.clone()),
        Reply::text("Tea then."),
    ]);
    let stopped = app.stream(&session, "message", says("go")).await;
    assert_eq!((stopped[1].1["name"].as_str(), &stopped[1].1["input"]), (Some("clarify"), &question));
    let answer = json!([{ "role": "tool", "toolCallId": stopped[1].1["toolCallId"], "content": "Tea" }]);
    let again = app.turn(&session, answer).await;
    let permission =
        json!([{ "role": "tool_permission", "toolCallId": call_ids(&again)[0], "granted": true }]);
    let last = app.turn(&session, permission).await;
    assert!(last["messages"][0]["content"].as_str().unwrap().contains("skipped the question"), "{last}");
    assert_eq!(app.history(&session, "full").await[2]["content"], "Tea");
}

#[tokio::test]
async fn a_tool_of_the_application_can_be_denied() {
    let app = App::start().await;
    let session = app.session_with_tools(true).await;
    app.server.model.script([Reply::tool_call("get_weather", json!({})), Reply::text("A pity.")]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    let denied =
        json!([{ "role": "tool_permission", "toolCallId": id, "granted": false, "reason": "closed" }]);
    assert_eq!(
        frames(app.stream(&session, "message", denied).await),
        json!([
            ["turn_start", {}],
            ["tool_result", { "toolCallId": "call_1", "content": "Tool call denied: closed" }],
            ["text", { "text": "A pity." }],
            ["turn_stop", { "stopReason": "end_turn" }],
        ])
    );
}

#[tokio::test]
async fn several_messages_of_a_turn_are_one_with_a_blank_line_between_them() {
    const IMAGE: &str = "https://example.com/hat.png";
    let app = App::start().await;
    let session = app.session().await;
    let image = json!({ "type": "image", "url": IMAGE });
    let messages = json!([
        { "role": "user", "content": "Hello" },
        { "role": "user", "content": "" },
        { "role": "user", "content": [{ "type": "text", "text": "World" }, image] },
        { "role": "user", "content": "What is it?" },
    ]);
    app.turn(&session, messages).await;
    let sent = app.server.model.requests()[0].body["messages"].clone();
    assert_eq!(
        sent[0]["content"],
        json!([
            { "type": "text", "text": "Hello\n\nWorld" },
            { "type": "image_url", "image_url": { "url": IMAGE } },
            { "type": "text", "text": "\n\nWhat is it?" },
        ])
    );
    let history = app.history(&session, "full").await;
    assert_eq!(history[0]["content"][0]["text"], "Hello\n\nWorld");
}

#[tokio::test]
async fn an_image_answers_a_question() {
    const IMAGE: &str = "https://example.com/hat.png";
    let app = App::start().await;
    let session = app.session_with(json!({ "tools": [{ "name": "clarify" }] }), json!({})).await;
    app.server.model.script([Reply::tool_call("clarify", json!({ "question": "Which?" }))]);
    let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
    let image = json!([{ "type": "image", "url": IMAGE }]);
    app.turn(&session, json!([{ "role": "tool", "toolCallId": id, "content": image }])).await;
    let asked = app.server.model.requests().pop().unwrap().body.to_string();
    assert!(asked.contains(IMAGE) && !asked.contains("skipped"), "{asked}");
    assert_eq!(app.history(&session, "full").await[2]["content"], image);
}

#[tokio::test]
async fn a_call_is_shown_as_the_model_made_it() {
    let app = App::start().await;
    let session = app.session_with(json!({ "tools": [{ "name": "clarify" }] }), json!({})).await;
    let question = json!({ "question": "Which?" });
    app.server.model.script([Reply::tool_call("clarify", question.clone())]);
    let shown = app.stream(&session, "message", says("go")).await;
    assert_eq!(shown[1].1["input"], question);
    for kind in ["full", "compacted"] {
        assert_eq!(app.history(&session, kind).await[1]["content"][0]["input"], question, "{kind}");
    }
}

#[tokio::test]
async fn a_secret_can_be_denied_and_left_out() {
    let app = App::start().await;
    let session = app.session_with(json!({ "tools": [{ "name": "request_secret" }] }), json!({})).await;
    for (granted, reason, told) in [
        (false, Some("not yours"), "Tool call denied: not yours"),
        (false, Some(" "), "Tool call denied"),
        (false, None, "Tool call denied"),
        (true, None, "The user supplied no value. Go on without it."),
    ] {
        let asks = json!({ "name": "TOKEN", "prompt": "The token?" });
        app.server.model.script([Reply::tool_call("request_secret", asks), Reply::text("Well.")]);
        let id = call_ids(&app.turn(&session, says("go")).await).remove(0);
        let mut answer = json!({ "role": "tool_permission", "toolCallId": id, "granted": granted });
        if let Some(reason) = reason {
            answer["reason"] = json!(reason);
        }
        assert_eq!(
            app.turn(&session, json!([answer])).await,
            json!({ "stopReason": "end_turn", "messages": [
                { "role": "tool", "toolCallId": id, "content": told },
                { "role": "assistant", "content": "Well." },
            ] })
        );
        let read = app.server.model.requests().pop().unwrap().body["messages"].clone();
        let read = read.as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
        assert!(read.ends_with(told), "{read}");
    }
}

#[tokio::test]
async fn an_empty_reason_is_none() {
    let app = App::start().await;
    let session = app.session_with_tools(false).await;
    let calls = [("web_search", json!({})), ("get_weather", json!({}))];
    app.server.model.script([Reply::tool_calls(calls), Reply::text("Well.")]);
    let ids = call_ids(&app.turn(&session, says("go")).await);
    let deny =
        |id: &String| json!({ "role": "tool_permission", "toolCallId": id, "granted": false, "reason": "" });
    let body = app.turn(&session, json!([deny(&ids[0]), deny(&ids[1])])).await;
    for message in &body["messages"].as_array().unwrap()[..2] {
        assert_eq!(message["content"], "Tool call denied");
    }
}
