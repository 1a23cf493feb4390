//! Subagents: work that an agent gives away, each in a log of its own.

use petasos_core::event::ToolEffect;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, Setup, TestServer, within};
use serde_json::{Value, json};

fn delegate(goals: &[&str]) -> Reply {
    let tasks: Vec<Value> = goals.iter().map(|goal| json!({ "goal": goal })).collect();
    Reply::tool_call("delegate_task", json!({ "tasks": tasks }))
}

async fn threads(server: &TestServer, session: &str) -> Vec<Value> {
    let listed = server.client.get(&format!("/v1/sessions/{session}/threads")).await.expect(200);
    listed["data"].as_array().unwrap().clone()
}

fn types(events: &[Value], prefix: &str) -> Vec<String> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap().to_owned());
    types.filter(|name| name.starts_with(prefix)).collect()
}

#[tokio::test]
async fn several_goals_run_side_by_side_and_their_results_come_back() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server
        .model
        .when("go", [delegate(&["Count the red ones.", "Count the blue ones."]), Reply::text("Seven.")]);
    server.model.when("Count the red ones.", [Reply::text("Three.")]);
    server.model.when("Count the blue ones.", [Reply::text("Four.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    assert_eq!(frames.last().unwrap().stop(), Some("end_turn"));
    let result = frames.iter().find(|frame| frame.event == "agent.tool_result").unwrap();
    let told: Vec<Value> = serde_json::from_str(&result.text()).unwrap();
    assert_eq!((&told[0]["result"], &told[1]["result"]), (&json!("Three."), &json!("Four.")));
    let events = server.client.events(&session).await;
    assert_eq!(types(&events, "agent.thread").len(), 4, "{events:?}");

    let threads = threads(&server, &session).await;
    assert_eq!((&threads[0]["task"], &threads[0]["status"]), (&json!("Count the red ones."), &json!("done")));
    let log = server.client.events(threads[0]["id"].as_str().unwrap()).await;
    assert_eq!(types(&log, "user."), ["user.message"]);
    // Its tokens count as the session's own, and it is no session that anybody made.
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["usage"]["modelCalls"], 4);
    let listed = server.client.get("/v1/sessions").await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);

    server.client.delete(&format!("/v1/sessions/{session}")).await.expect(200);
    let gone = server.client.get(&format!("/v1/sessions/{}", threads[1]["id"].as_str().unwrap())).await;
    gone.expect_error(404, "not_found");
}

#[tokio::test]
async fn a_subagent_has_nobody_to_ask_and_does_not_delegate() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let server = TestServer::start_with(Setup::default().with_tool(tool.clone())).await;
    let session = server.session().await;
    let tries = Reply::tool_call("write_note", json!({ "text": "x" }));
    server.model.when("go", [delegate(&["Write a note."]), Reply::text("It could not.")]);
    server.model.when("Write a note.", [tries, delegate(&["Go deeper."]), Reply::text("I may not.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().stop(), Some("end_turn"));
    let thread = threads(&server, &session).await[0]["id"].as_str().unwrap().to_owned();
    let log = json!(server.client.events(&thread).await).to_string();
    assert!(log.contains("has nobody to ask") && log.contains("There is no tool delegate_task"), "{log}");
    assert_eq!(tool.runs(), 0);
    let offered = server.model.requests()[1].body["tools"].to_string();
    assert!(!offered.contains("delegate_task") && !offered.contains("clarify"), "{offered}");
}

#[tokio::test]
async fn an_interrupt_reaches_subagents() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.when("go", [delegate(&["Take your time."])]);
    server.model.when("Take your time.", [Reply::text("Slowly").gate(&gate)]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    within("the subagent", gate.reached()).await;
    let thread = threads(&server, &session).await[0]["id"].as_str().unwrap().to_owned();
    let mut of_thread = server.client.stream(&thread, "").await;
    server.client.event(&session, json!({ "type": "user.interrupt" })).await.expect(200);
    assert_eq!(stream.until_idle().await.last().unwrap().data["payload"]["stop_reason"]["interrupted"], true);
    let ended = of_thread.until_idle().await;
    assert_eq!(ended.last().unwrap().data["payload"]["stop_reason"]["interrupted"], true);
    server.wait_until_asleep().await;
}

#[tokio::test]
async fn subagents_survive_a_restart_and_are_told_once() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let gate = Gate::new();
    server.model.when("go", [delegate(&["Be quick.", "Take your time."]), Reply::text("Both.")]);
    server.model.when("Be quick.", [Reply::text("Quick.")]);
    server.model.when("Take your time.", [Reply::text("Lost").gate(&gate), Reply::text("Slow.")]);
    server.client.message(&session, "go").await.expect(200);
    within("the subagent", gate.reached()).await;
    let server = server.restart().await;
    let mut stream = server.client.stream(&session, "?after=0").await;
    let frames = stream.until(|frame| frame.stop() == Some("end_turn")).await;
    assert!(frames.iter().any(|frame| frame.text() == "Both."));
    let events = server.client.events(&session).await;
    let mut names = types(&events, "agent.thread");
    names.sort();
    assert_eq!(names.len(), 4, "{names:?}");
    for thread in threads(&server, &session).await {
        let log = server.client.events(thread["id"].as_str().unwrap()).await;
        assert_eq!(types(&log, "user."), ["user.message"]);
    }
}

#[tokio::test]
async fn wrong_and_too_many_tasks_are_told_to_the_model() {
    let server = TestServer::start().await;
    let session = server.session().await;
    let many = delegate(&["a", "b", "c", "d", "e"]);
    server.model.script([many, Reply::tool_call("delegate_task", json!({})), Reply::text("I see.")]);
    let mut stream = server.client.stream(&session, "").await;
    server.client.message(&session, "go").await.expect(200);
    let frames = stream.until_idle().await;
    let results = frames.iter().filter(|frame| frame.event == "agent.tool_result").map(|frame| frame.text());
    let results: Vec<String> = results.collect();
    assert!(results[0].contains("at most 4") && results[1].contains("goal"), "{results:?}");
    assert!(threads(&server, &session).await.is_empty());
}
