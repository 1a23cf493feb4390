//! Turns that wait for somebody: custom tools, confirmations, questions.

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::{Value, json};

fn custom_result(id: &Value, text: &str) -> Value {
    json!({ "type": "user.custom_tool_result", "tool_use_id": id, "content": [{ "type": "text", "text": text }] })
}

#[tokio::test]
async fn a_custom_tool_is_run_by_the_application() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    let call = Reply::tool_call("check_order", json!({ "order_id": "123" }));
    server.model.script([call, Reply::text("It ships tomorrow.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "Where is my order?").await.expect(200);
    let frames = stream.until_idle().await;
    let used = frames.iter().find(|frame| frame.event == "agent.custom_tool_use").unwrap();
    let id = used.data["payload"]["id"].clone();
    assert!(id.as_str().unwrap().starts_with("custom_toolu_"));
    assert_eq!(
        used.data["payload"],
        json!({ "type": "agent.custom_tool_use", "id": id, "tool": "check_order", "input": { "order_id": "123" } })
    );
    let stop = &frames.last().unwrap().data["payload"]["stop_reason"];
    assert_eq!(stop, &json!({ "type": "requires_action", "event_ids": [id] }));

    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["stopReason"]), (&json!("idle"), stop));
    let action = &shown["pendingActions"][0];
    assert_eq!((&action["id"], &action["type"]), (&id, &json!("custom_tool")));
    assert_eq!((&action["tool"], &action["input"]["order_id"]), (&json!("check_order"), &json!("123")));
    server.wait_until_asleep().await;

    let refused = server.client.message(&session, "hello?").await;
    assert_eq!(refused.should_retry.as_deref(), Some("false"));
    assert_eq!(refused.expect_error(409, "action_required")["pending"], json!([id]));

    server.client.event(&session, custom_result(&id, "Order #123 ships tomorrow.")).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames[1].event, "session.status_running");
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let told = &server.model.requests()[1].body["messages"];
    assert!(told.to_string().contains("Order #123 ships tomorrow."));

    let again = server.client.event(&session, custom_result(&id, "again")).await;
    assert_eq!(again.expect_error(409, "action_not_pending")["pending"], json!([]));
}

#[tokio::test]
async fn a_pause_survives_a_restart() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({})), Reply::text("Thanks.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let before = server.client.events(&session).await;

    let server = server.restart().await;
    assert_eq!(server.client.events(&session).await, before);
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    let id = shown["pendingActions"][0]["id"].clone();
    let mut stream = server.client.stream(&session, "").await;
    server.client.event(&session, custom_result(&id, "found")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_request_that_is_refused_is_told_what_stands_in_its_way() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({})), Reply::text("Thanks.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let id = frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"][0].clone();
    let path = format!("/v1/sessions/{session}/events");
    let result = custom_result(&id, "found");
    let message = json!({ "type": "user.message", "content": [{ "type": "text", "text": "and?" }] });
    let refused = server.client.post(&path, json!([result, message])).await;
    assert_eq!(refused.expect_error(409, "action_required")["pending"], json!([id]));
    let refused =
        server.client.post(&path, json!([result, result])).await.expect_error(409, "action_not_pending");
    assert_eq!(refused["pending"], json!([id]));
    let text = refused["message"].as_str().unwrap();
    assert!(text.starts_with("The action custom_toolu_") && text.contains("of this request"), "{text}");
    server.client.event(&session, result).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn several_actions_resume_when_all_are_answered() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    let calls = [("check_order", json!({ "order_id": "1" })), ("check_order", json!({ "order_id": "2" }))];
    server.model.script([Reply::tool_calls(calls), Reply::text("Both are fine.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let ids = frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"].as_array().unwrap().clone();
    assert_eq!(ids.len(), 2);

    server.client.event(&session, custom_result(&ids[1], "second")).await.expect(200);
    let frames = stream.until_idle().await;
    let events: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(events, ["user.custom_tool_result", "session.status_idle"]);
    assert_eq!(frames[1].data["payload"]["stop_reason"]["event_ids"], json!([ids[0]]));
    assert_eq!(server.model.requests().len(), 1);

    server.client.event(&session, custom_result(&ids[0], "first")).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    // The model gets the results in the order of its calls.
    let messages = server.model.requests()[1].body["messages"].clone();
    let results: Vec<&str> =
        messages.as_array().unwrap().iter().rev().take(2).map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(results, ["second", "first"]);
}

#[tokio::test]
async fn one_request_can_answer_all() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    let calls = [("check_order", json!({})), ("check_order", json!({}))];
    server.model.script([Reply::tool_calls(calls), Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let ids = frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"].as_array().unwrap().clone();
    let events: Vec<Value> = ids.iter().map(|id| custom_result(id, "ok")).collect();
    server
        .client
        .post(&format!("/v1/sessions/{session}/events"), json!({ "events": events }))
        .await
        .expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.iter().filter(|frame| frame.event == "session.status_idle").count(), 1);
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn a_request_with_one_bad_answer_changes_nothing() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({}))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let id = frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"][0].clone();
    let before = server.client.events(&session).await;
    let events = json!([custom_result(&id, "good"), custom_result(&json!("custom_toolu_other"), "bad")]);
    let refused = server.client.post(&format!("/v1/sessions/{session}/events"), events).await;
    refused.expect_error(409, "action_not_pending");
    let wrong_kind = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "allow" });
    let body = server.client.event(&session, wrong_kind).await.expect_error(409, "action_not_pending");
    assert!(body["message"].as_str().unwrap().contains("user.custom_tool_result"));
    assert_eq!(body["pending"], json!([id]));
    assert_eq!(server.client.events(&session).await, before);
}

#[tokio::test]
async fn a_question_waits_for_its_answer() {
    let server = TestServer::start().await;
    for (choices, answer, told) in [
        (json!(["Staging", "Production"]), "Production", "Production"),
        (Value::Null, "", "skipped the question"),
    ] {
        let session = server.session().await;
        let call = Reply::tool_call("clarify", json!({ "question": "Where to?", "choices": choices }));
        server.model.script([call, Reply::text("OK.")]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "deploy").await.expect(200);
        let frames = stream.until_idle().await;
        let asked = frames.iter().find(|frame| frame.event == "agent.clarify_request").unwrap();
        let id = asked.data["payload"]["request_id"].clone();
        assert!(id.as_str().unwrap().starts_with("clarify_"));
        assert_eq!(asked.data["payload"]["question"], "Where to?");
        assert_eq!(asked.data["payload"]["choices"], choices);
        assert_eq!(frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"], json!([id]));
        let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
        assert_eq!(shown["pendingActions"][0]["type"], "clarify");
        assert_eq!(shown["pendingActions"][0]["question"], "Where to?");
        assert_eq!(shown["pendingActions"][0]["choices"], choices);
        let result = json!({ "type": "user.clarify_result", "request_id": id, "answer": answer });
        server.client.event(&session, result).await.expect(200);
        assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
        let requests = server.model.requests();
        assert!(requests.last().unwrap().body.to_string().contains(told));
    }
}

#[tokio::test]
async fn a_tool_that_changes_things_asks_first() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let session = server.session().await;
    let call = || Reply::tool_call("write_note", json!({ "text": "milk" }));
    server.model.script([
        call(),
        Reply::text("Not written."),
        call(),
        Reply::text("Written."),
        call(),
        Reply::text("Again."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    let confirm = |id: &Value, result: &str, scope: &str| json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": result, "scope": scope });

    server.client.message(&session, "note milk").await.expect(200);
    let frames = stream.until_idle().await;
    let used = &frames.iter().find(|frame| frame.event == "agent.tool_use").unwrap().data["payload"];
    assert_eq!((&used["requires_action"], &used["preview"]), (&json!(true), &json!("milk")));
    assert_eq!(
        server.client.get(&format!("/v1/sessions/{session}")).await.body["pendingActions"][0]["type"],
        "tool_confirmation"
    );
    server.client.event(&session, confirm(&used["id"], "deny", "once")).await.expect(200);
    let frames = stream.until_idle().await;
    let result = &frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap().data["payload"];
    assert_eq!((&result["status"], &result["is_error"]), (&json!("failed"), &json!(true)));
    assert_eq!(tool.runs(), 0);

    server.client.message(&session, "do it").await.expect(200);
    let frames = stream.until_idle().await;
    let id = frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"][0].clone();
    server.client.event(&session, confirm(&id, "allow", "session")).await.expect(200);
    stream.until_idle().await;
    assert_eq!(tool.runs(), 1);

    server.client.message(&session, "and again").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"), "the session's grant silences the question");
    assert_eq!(tool.runs(), 2);
}

#[tokio::test]
async fn an_allowance_for_good_holds_for_the_same_user_only() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let agent = server.agent_with(json!({})).await;
    let path = format!("/v1/agents/{agent}/sessions");
    let run = async |user: &str| {
        server.model.script([Reply::tool_call("write_note", json!({})), Reply::text("Done.")]);
        let session = server.client.post(&path, json!({ "userId": user })).await.expect(201);
        let session = session["id"].as_str().unwrap().to_owned();
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        let frames = stream.until_idle().await;
        let stop = frames.last().unwrap().data["payload"]["stop_reason"].clone();
        if stop["type"] == "requires_action" {
            let id = &stop["event_ids"][0];
            let allow = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": "allow", "scope": "always" });
            server.client.event(&session, allow).await.expect(200);
            stream.until_idle().await;
        }
        stop["type"].as_str().unwrap().to_owned()
    };
    assert_eq!(run("anna").await, "requires_action");
    assert_eq!(run("anna").await, "end_turn");
    assert_eq!(run("ben").await, "requires_action");
}

#[tokio::test]
async fn policies_of_the_agent_decide_who_asks() {
    let writes = CountingTool::new("write_note", ToolEffect::SideEffect);
    let reads = CountingTool::new("read_note", ToolEffect::ReadOnly);
    let setup = Setup::default().with_tool(writes.clone()).with_tool(reads.clone());
    let server = TestServer::start_with(setup).await;
    let tools = json!([{
        "type": "agent_toolset",
        "defaultConfig": { "permissionPolicy": { "type": "always_allow" } },
        "configs": [{ "name": "read_note", "permissionPolicy": { "type": "always_ask" } }],
    }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::tool_calls([("write_note", json!({})), ("read_note", json!({}))])]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(
        frames.last().unwrap().data["payload"]["stop_reason"]["event_ids"].as_array().unwrap().len(),
        1
    );
    assert_eq!((writes.runs(), reads.runs()), (1, 0));
}

#[tokio::test]
async fn an_interrupt_during_a_pause_clears_it() {
    let server = TestServer::start().await;
    let session = server.session_with_custom_tool().await;
    server.model.script([Reply::tool_call("check_order", json!({})), Reply::text("Fresh start.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    let frames = stream.until_idle().await;
    let events: Vec<&str> = frames.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(events, ["user.interrupt", "session.status_idle"]);
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["pendingActions"], json!([]));
    server.client.message(&session, "something else").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
}

#[tokio::test]
async fn interrupting_one_session_leaves_the_pauses_of_others() {
    let server = TestServer::start().await;
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let session = server.session_with_custom_tool().await;
        server.model.script([Reply::tool_call("check_order", json!({}))]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        stream.until_idle().await;
        sessions.push(session);
    }
    server.client.event(&sessions[0], json!({ "type": "user.interrupt" })).await.expect(200);
    let shown = server.client.get(&format!("/v1/sessions/{}", sessions[1])).await.expect(200);
    assert_eq!(shown["pendingActions"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn answers_to_nothing_say_that_nothing_is_pending() {
    let server = TestServer::start().await;
    let session = server.session().await;
    for answer in [
        json!({ "type": "user.tool_confirmation", "tool_use_id": "toolu_1", "result": "allow" }),
        json!({ "type": "user.custom_tool_result", "tool_use_id": "custom_toolu_1", "content": [{ "type": "text", "text": "x" }] }),
        json!({ "type": "user.clarify_result", "request_id": "clarify_1", "answer": "x" }),
        json!({ "type": "user.sudo_result", "request_id": "sudo_1", "password": "hunter2" }),
        json!({ "type": "user.secret_result", "request_id": "secret_1", "value": "hunter2" }),
    ] {
        let body = server.client.event(&session, answer).await.expect_error(409, "action_not_pending");
        assert_eq!(body["pending"], json!([]));
        assert!(!body.to_string().contains("hunter2"));
    }
    assert!(server.client.events(&session).await.is_empty());
}
