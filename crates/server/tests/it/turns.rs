//! Turns that run through.

use petasos_core::event::ToolEffect;
use petasos_core::limits::Limits;
use petasos_core::model::{Stop, Usage};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, Setup, TestServer};
use serde_json::{Value, json};

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_plain_turn_has_the_documented_events_and_envelope() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let usage = Usage { input_tokens: 12, output_tokens: 3, cached_input_tokens: 4, ..Usage::default() };
    server.model.script([Reply::text("Hello there!").usage(usage)]);
    let mut stream = server.client.stream(&session, "").await;

    let accepted = server.client.message(&session, "Say hello in one sentence.").await.expect(200);
    let envelope = &accepted["data"][0];
    assert_eq!(envelope["type"], "user.message");
    assert_eq!(envelope["status"], "pending");
    assert_eq!(envelope["processedAt"], Value::Null);
    assert_eq!(envelope["sessionId"], session.as_str());
    assert_eq!(envelope["sequence"], 1);

    let frames = stream.until_idle().await;
    let durable: Vec<_> = frames.iter().filter(|frame| frame.id.is_some()).collect();
    let names: Vec<&str> = durable.iter().map(|frame| frame.event.as_str()).collect();
    assert_eq!(names, ["user.message", "session.status_running", "agent.message", "session.status_idle"]);
    for frame in &durable {
        assert_eq!(frame.id.as_deref(), Some(frame.data["sequence"].to_string().as_str()));
        assert_eq!(frame.data["type"], frame.data["payload"]["type"]);
        assert_eq!(frame.data["type"], frame.event.as_str());
    }
    let message = &durable[2].data;
    assert_eq!(
        message["payload"],
        json!({ "type": "agent.message", "delta": false, "content": [{ "type": "text", "text": "Hello there!" }] })
    );
    assert_eq!(message["status"], "complete");
    assert_eq!(durable[3].data["payload"]["stop_reason"], json!({ "type": "end_turn" }));

    let deltas: String = frames.iter().filter(|frame| frame.is_delta()).map(|frame| frame.text()).collect();
    assert_eq!(deltas, "Hello there!");
    let title = frames.iter().find(|frame| frame.event == "session.title_updated").unwrap();
    assert_eq!(title.data["payload"]["title"], "Say hello in one sentence.");
    assert_eq!(title.id, None);

    let listed = server.client.events(&session).await;
    assert_eq!(types(&listed), names, "the list shows what was streamed, without what is live only");
    assert_eq!(listed[0]["status"], "complete");
    assert!(listed[0]["processedAt"].is_string());

    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["status"], "idle");
    assert_eq!(shown["title"], "Say hello in one sentence.");
    assert_eq!(shown["stopReason"], json!({ "type": "end_turn" }));
    assert_eq!(
        shown["usage"],
        json!({ "inputTokens": 12, "outputTokens": 3, "cachedInputTokens": 4, "modelCalls": 1 })
    );
    let messages: Vec<_> =
        shown["messages"].as_array().unwrap().iter().map(|m| (&m["role"], &m["content"])).collect();
    assert_eq!(
        messages,
        [(&json!("user"), &json!("Say hello in one sentence.")), (&json!("agent"), &json!("Hello there!"))]
    );
}

#[tokio::test]
async fn the_model_is_sent_the_instructions_and_the_whole_conversation() {
    let server = TestServer::start().await;
    let agent = server.agent_with(json!({ "instructions": "Be brief." })).await;
    let session = server.client.session(&agent).await;
    server.model.script([Reply::text("One."), Reply::text("Two.")]);
    let mut stream = server.client.stream(&session, "").await;
    for text in ["first", "second"] {
        server.client.message(&session, text).await.expect(200);
        stream.until_idle().await;
    }
    let requests = server.model.requests();
    let spoken: Vec<_> = requests[1].body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            format!("{}: {}", message["role"].as_str().unwrap(), message["content"].as_str().unwrap())
        })
        .collect();
    assert_eq!(spoken, ["system: Be brief.", "user: first", "assistant: One.", "user: second"]);
    assert_eq!(requests[1].body["model"], "scripted");
}

#[tokio::test]
async fn every_wire_format_runs_a_turn_with_thinking_and_tools() {
    let server = TestServer::start().await;
    for provider in ["openai", "responses", "anthropic"] {
        let agent = server.agent_with(json!({ "model": format!("{provider}/scripted") })).await;
        let session = server.client.session(&agent).await;
        let plan = json!({ "todos": [{ "content": "one" }] });
        let first = Reply::thinking("Let me plan.").and_text("Planning.").and_tool_call("todo", plan);
        server.model.script([first, Reply::text("All done.")]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "plan something").await.expect(200);
        stream.until_idle().await;
        let events = server.client.events(&session).await;
        assert_eq!(
            types(&events),
            [
                "user.message",
                "session.status_running",
                "agent.thinking",
                "agent.message",
                "agent.tool_use",
                "agent.tool_result",
                "agent.message",
                "session.status_idle"
            ]
        );
        assert_eq!(events[4]["payload"]["status"], "running");
        assert_eq!(events[4]["payload"]["input"]["todos"][0]["content"], "one");
        assert_eq!(events[5]["payload"]["tool_use_id"], events[4]["payload"]["id"]);
        assert_eq!(events[5]["payload"]["status"], "completed");
        assert_eq!(events[5]["payload"]["content"][0]["text"], "[ ] one");
    }
}

#[tokio::test]
async fn tool_calls_that_cannot_be_carried_out_are_told_to_the_model() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([
        Reply::tool_calls([
            ("no_such_tool", json!({})),
            ("todo", json!({ "todos": 5 })),
            ("clarify", json!({})),
        ]),
        Reply::text("I see."),
    ]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    let events = server.client.events(&session).await;
    let results: Vec<_> = events.iter().filter(|event| event["type"] == "agent.tool_result").collect();
    assert_eq!(results.len(), 3);
    for result in &results {
        assert_eq!(result["payload"]["status"], "failed");
        assert_eq!(result["payload"]["is_error"], true);
    }
    assert!(results.iter().any(|result| result.to_string().contains("There is no tool no_such_tool.")));
    assert_eq!(events.last().unwrap()["payload"]["stop_reason"]["type"], "end_turn");
}

#[tokio::test]
async fn a_second_message_is_refused_while_a_turn_runs_and_leaves_no_trace() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("One ").gate(&gate).and_text("two.")]);
    let mut stream = server.client.stream(&session, "").await;
    let opened = server.client.message(&session, "count").await.expect(200);
    gate.reached().await;
    assert_eq!(server.client.get(&format!("/v1/sessions/{session}")).await.expect(200)["status"], "running");
    let before = server.client.events(&session).await;

    let refused = server.client.message(&session, "hello?").await;
    assert_eq!(refused.should_retry.as_deref(), Some("false"));
    let body = refused.expect_error(409, "turn_in_progress");
    assert_eq!(body["turn_id"], opened["data"][0]["id"]);
    assert_eq!(server.client.events(&session).await, before);

    gate.open();
    let frames = stream.until_idle().await;
    let text: String = frames.iter().filter(|frame| frame.is_delta()).map(|frame| frame.text()).collect();
    assert_eq!(text, "One two.");
}

#[tokio::test]
async fn an_interrupt_stops_the_model_and_keeps_what_was_said() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server
        .model
        .script([Reply::text("Once upon a time").gate(&gate).and_text(" never said"), Reply::text("Yes?")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "tell me a story").await.expect(200);
    stream.until(|frame| frame.is_delta() && frame.text().ends_with("time")).await;
    server.client.event(&session, json!({ "type": "user.interrupt", "message": "enough" })).await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(
        frames.last().unwrap().data["payload"]["stop_reason"],
        json!({ "type": "end_turn", "interrupted": true })
    );
    let said = frames.iter().find(|frame| frame.event == "agent.message" && !frame.is_delta()).unwrap();
    assert_eq!(said.text(), "Once upon a time");
    server.model.wait_for_disconnects(1).await;

    server.client.message(&session, "are you there?").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().data["payload"]["stop_reason"], json!({ "type": "end_turn" }));
}

#[tokio::test]
async fn an_interrupt_stops_a_running_tool() {
    let tool = CountingTool::new("slow", ToolEffect::ReadOnly).held_up();
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let session = server.session().await;
    server.model.script([Reply::tool_call("slow", json!({}))]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    tool.wait_for_start().await;
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    let frames = stream.until_idle().await;
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    assert_eq!(result.data["payload"]["status"], "failed");
    server.wait_until_asleep().await;
}

#[tokio::test]
async fn an_interrupt_while_idle_changes_nothing() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let answer = server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    assert_eq!(answer["data"].as_array().unwrap().len(), 1);
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!((&shown["status"], &shown["stopReason"]), (&json!("idle"), &Value::Null));
}

#[tokio::test]
async fn steering_is_seen_in_the_same_turn() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("A long").gate(&gate).and_text(" answer."), Reply::text("Short.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "explain").await.expect(200);
    gate.reached().await;
    let steer = json!({ "type": "user.steer", "message": "Keep it short." });
    server.client.event(&session, steer).await.expect(200);
    gate.open();
    stream.until_idle().await;
    assert_eq!(server.model.requests().len(), 2);
    assert!(server.model.requests()[1].last_user_text().contains("Keep it short."));
    let events = server.client.events(&session).await;
    assert_eq!(events.iter().filter(|event| event["type"] == "session.status_idle").count(), 1);
}

#[tokio::test]
async fn steering_is_seen_even_if_the_answer_was_cut_short() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    let long = Reply::text("A long").gate(&gate).and_text(" answer").stop(Stop::MaxTokens);
    server.model.script([long, Reply::text("Short.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "explain").await.expect(200);
    gate.reached().await;
    let steer = json!({ "type": "user.steer", "message": "Keep it short." });
    server.client.event(&session, steer).await.expect(200);
    gate.open();
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().data["payload"]["stop_reason"], json!({ "type": "end_turn" }));
    assert!(server.model.requests()[1].last_user_text().contains("Keep it short."));
}

#[tokio::test]
async fn steering_while_idle_waits_for_the_next_turn() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let steer = json!({ "type": "user.steer", "message": "Answer in French." });
    server.client.event(&session, steer).await.expect(200);
    let waiting = server.client.events(&session).await;
    assert_eq!((&waiting[0]["status"], &waiting[0]["processedAt"]), (&json!("pending"), &Value::Null));
    assert!(server.model.requests().is_empty());
    server.model.script([Reply::text("Bonjour.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "hello").await.expect(200);
    stream.until_idle().await;
    assert!(server.model.requests()[0].body.to_string().contains("Answer in French."));
    assert_eq!(server.client.events(&session).await[0]["status"], "complete");
}

#[tokio::test]
async fn an_interrupt_and_a_message_can_travel_together() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.script([Reply::text("Old").gate(&gate), Reply::text("New.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "old question").await.expect(200);
    gate.reached().await;
    let events = json!([{ "type": "user.interrupt" }, petasos_testkit::client::message("new question")]);
    let accepted = server.client.post(&format!("/v1/sessions/{session}/events"), events).await.expect(200);
    assert_eq!(accepted["data"].as_array().unwrap().len(), 2);
    stream.until_idle().await;
    let frames = stream.until_idle().await;
    assert!(frames.iter().any(|frame| !frame.is_delta() && frame.text() == "New."));
}

#[tokio::test]
async fn answers_that_are_cut_short_say_why() {
    let server = TestServer::start().await;
    for (stop, reason) in [(Stop::MaxTokens, "max_tokens"), (Stop::Refusal, "refusal")] {
        let session = server.session().await;
        server.model.script([Reply::text("I am").stop(stop)]);
        let mut stream = server.client.stream(&session, "").await;
        server.client.message(&session, "go").await.expect(200);
        let frames = stream.until_idle().await;
        assert_eq!(
            frames.last().unwrap().data["payload"]["stop_reason"],
            json!({ "type": "end_turn", "reason": reason })
        );
    }
}

#[tokio::test]
async fn limits_end_a_runaway_turn_with_a_reason() {
    let limits = Limits { turn_model_calls: 3, ..Limits::default() };
    let server = TestServer::start_with(Setup { limits, ..Setup::default() }).await;
    let session = server.session().await;
    let again = || Reply::tool_call("todo", json!({ "todos": [] }));
    server.model.script([again(), again(), again(), again()]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "loop").await.expect(200);
    let frames = stream.until_idle().await;
    let reason = &frames.last().unwrap().data["payload"]["stop_reason"];
    assert_eq!((&reason["type"], &reason["code"]), (&json!("error"), &json!("turn_model_calls_exceeded")));
    assert_eq!(server.model.requests().len(), 3);
}

#[tokio::test]
async fn a_turn_that_takes_too_long_is_stopped() {
    let limits = Limits { turn_time: std::time::Duration::from_millis(200), ..Limits::default() };
    let server = TestServer::start_with(Setup { limits, ..Setup::default() }).await;
    let session = server.session().await;
    server.model.script([Reply::text("thinking about it").stall_after_chunks(1)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().data["payload"]["stop_reason"]["code"], "turn_time_exceeded");
    server.model.wait_for_disconnects(1).await;
}

#[tokio::test]
async fn a_session_budget_stops_further_turns() {
    let limits = Limits { session_tokens: Some(100), ..Limits::default() };
    let server = TestServer::start_with(Setup { limits, ..Setup::default() }).await;
    let session = server.session().await;
    let usage = Usage { input_tokens: 90, output_tokens: 20, cached_input_tokens: 0, ..Usage::default() };
    server.model.script([Reply::text("expensive").usage(usage)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "one").await.expect(200);
    stream.until_idle().await;
    server.client.message(&session, "two").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().data["payload"]["stop_reason"]["code"], "session_budget_exceeded");
    assert_eq!(server.model.requests().len(), 1);
}

#[tokio::test]
async fn long_texts_are_shown_in_blocks() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let text = "ü".repeat(45_000);
    server.model.script([Reply::text(text.clone()).in_chunks_of(5_000)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let said = frames.iter().find(|frame| frame.event == "agent.message" && !frame.is_delta()).unwrap();
    assert_eq!(said.data["payload"]["content"].as_array().unwrap().len(), 3);
    assert_eq!(said.text(), text);
}

#[tokio::test]
async fn idle_sessions_hold_no_memory_and_no_task() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([Reply::text("Done.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    stream.until_idle().await;
    drop(stream);
    server.wait_until_asleep().await;
    petasos_testkit::within("the reader's feed to go", async {
        while server.engine.held_sessions() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
