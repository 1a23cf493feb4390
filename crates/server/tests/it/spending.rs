//! What model calls cost, and budgets that stop turns.

use petasos_core::budget::AtBudget;
use petasos_core::limits::Limits;
use petasos_core::model::Usage;
use petasos_models::{Catalog, ModelFacts, Prices};
use petasos_testkit::{Reply, Setup, TestServer};
use serde_json::{Value, json};

/// A server whose models cost 2 for a million tokens read, 1 if cached, and 10 for a million written.
async fn server(limits: Limits) -> TestServer {
    let prices = Prices { input: 2.0, output: 10.0, cached_input: Some(1.0), cache_write: None };
    let facts = ModelFacts { prices: Some(prices), ..ModelFacts::default() };
    let catalog = Catalog { models: [("openai/*".to_owned(), facts)].into(), ..Catalog::default() };
    TestServer::start_with(Setup { catalog, limits, ..Setup::default() }).await
}

/// An answer that costs 0.5.
fn costly() -> Reply {
    let usage = Usage {
        input_tokens: 150_000,
        output_tokens: 25_000,
        cached_input_tokens: 50_000,
        ..Usage::default()
    };
    Reply::text("That was a lot.").usage(usage)
}

async fn stop_of_turn(server: &TestServer, session: &str) -> Value {
    let mut stream = server.client.stream(session, "").await;
    server.client.message(session, "go").await.expect(200);
    stream.until_idle().await.last().unwrap().data["payload"]["stop_reason"].clone()
}

#[tokio::test]
async fn costs_are_shown_for_sessions_and_agents() {
    let server = server(Limits::default()).await;
    let agent = server.agent_with(json!({})).await;
    let (one, two) = (server.client.session(&agent).await, server.client.session(&agent).await);
    server.model.script([costly(), costly(), costly()]);
    stop_of_turn(&server, &one).await;
    stop_of_turn(&server, &one).await;
    stop_of_turn(&server, &two).await;
    let shown = server.client.get(&format!("/v1/sessions/{one}")).await.expect(200);
    assert_eq!(shown["usage"]["cost"], 1.0);
    server.client.delete(&format!("/v1/sessions/{one}")).await;
    let usage = server.client.get(&format!("/v1/agents/{agent}/usage")).await.expect(200);
    let expected = json!({ "inputTokens": 450_000, "outputTokens": 75_000, "cachedInputTokens": 150_000,
        "modelCalls": 3, "cost": 1.5 });
    assert_eq!(usage["total"], expected, "sessions that are gone count too");
    assert_eq!(usage["data"].as_array().unwrap().len(), 1);
    let before = server.client.get(&format!("/v1/agents/{agent}/usage?from=2020-01-01&to=2020-01-31")).await;
    assert_eq!(before.expect(200)["data"], json!([]));
    server
        .client
        .get(&format!("/v1/agents/{agent}/usage?from=soon"))
        .await
        .expect_error(400, "validation_error");
    server.client.get("/v1/agents/nobody/usage").await.expect_error(404, "not_found");
}

#[tokio::test]
async fn without_prices_nothing_is_said_about_cost() {
    let server = TestServer::start().await;
    let session = server.session().await;
    server.model.script([costly()]);
    stop_of_turn(&server, &session).await;
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    assert_eq!(shown["usage"].get("cost"), None);
    assert_eq!(shown["usage"]["inputTokens"], 150_000);
}

#[tokio::test]
async fn a_turn_stops_at_its_budget_and_the_next_may_go_on() {
    let server = server(Limits { turn_cost_nanos: Some(400_000_000), ..Limits::default() }).await;
    let agent = server.agent_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;
    let session = server.client.session(&agent).await;
    let call = Reply::tool_call("todo", json!({ "todos": ["x"] }))
        .usage(Usage { output_tokens: 50_000, ..Usage::default() });
    server.model.script([call, costly()]);
    let stop = stop_of_turn(&server, &session).await;
    assert_eq!(stop["code"], "turn_cost_exceeded");
    assert!(stop["message"].as_str().unwrap().contains("0.50 of 0.40"), "{stop}");
    assert_eq!(stop_of_turn(&server, &session).await["type"], "end_turn");
}

#[tokio::test]
async fn what_subagents_cost_counts_for_the_turn_that_gave_them_work() {
    let server = server(Limits { turn_cost_nanos: Some(400_000_000), ..Limits::default() }).await;
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let agent = server.agent_with(json!({ "tools": tools })).await;
    let session = server.client.session(&agent).await;
    let delegate = Reply::tool_call("delegate_task", json!({ "tasks": [{ "goal": "Spend it." }] }));
    server.model.when("go", [delegate, costly()]);
    server.model.when("Spend it.", [costly()]);
    assert_eq!(stop_of_turn(&server, &session).await["code"], "turn_cost_exceeded");
}

#[tokio::test]
async fn a_session_stops_at_its_budget() {
    let server = server(Limits { session_cost_nanos: Some(500_000_000), ..Limits::default() }).await;
    let session = server.session().await;
    server.model.script([costly()]);
    assert_eq!(stop_of_turn(&server, &session).await["type"], "end_turn");
    assert_eq!(stop_of_turn(&server, &session).await["code"], "session_cost_exceeded");
    assert_eq!(server.model.requests().len(), 1);
}

#[tokio::test]
async fn an_agent_stops_at_its_budget_in_all_of_its_sessions_and_no_other_does() {
    for (limits, code) in [
        (Limits { agent_day_cost_nanos: Some(1), ..Limits::default() }, "agent_day_budget_exceeded"),
        (Limits { agent_month_cost_nanos: Some(1), ..Limits::default() }, "agent_month_budget_exceeded"),
    ] {
        let server = server(limits).await;
        let agent = server.agent_with(json!({})).await;
        let (one, two) = (server.client.session(&agent).await, server.client.session(&agent).await);
        server.model.script([costly(), costly()]);
        assert_eq!(stop_of_turn(&server, &one).await["type"], "end_turn");
        let stop = stop_of_turn(&server, &two).await;
        assert_eq!(stop["code"], code);
        assert!(stop["message"].as_str().unwrap().contains(&agent), "{stop}");
        let server = server.restart().await;
        assert_eq!(stop_of_turn(&server, &two).await["code"], code, "a restart forgets nothing");
        let other = server.session().await;
        assert_eq!(stop_of_turn(&server, &other).await["type"], "end_turn");
    }
}

/// The question that a turn waits for.
async fn question(server: &TestServer, session: &str) -> Value {
    let shown = server.client.get(&format!("/v1/sessions/{session}")).await.expect(200);
    shown["pendingActions"][0].clone()
}

/// Answers the question, and says how the turn ended.
async fn answer(server: &TestServer, session: &str, result: &str) -> Value {
    let mut stream = server.client.stream(session, "").await;
    let id = question(server, session).await["id"].clone();
    let confirmation = json!({ "type": "user.tool_confirmation", "tool_use_id": id, "result": result,
        "scope": "always" });
    server.client.event(session, confirmation).await.expect(200);
    stream.until_idle().await.last().unwrap().data["payload"]["stop_reason"].clone()
}

/// An answer that costs 0.5 and calls a tool.
fn costly_call() -> Reply {
    let usage = Usage { output_tokens: 50_000, ..Usage::default() };
    Reply::tool_call("todo", json!({ "todos": ["x"] })).usage(usage)
}

#[tokio::test]
async fn a_turn_can_wait_at_its_budget_until_somebody_lets_it_go_on() {
    let limits =
        Limits { turn_cost_nanos: Some(400_000_000), at_budget: AtBudget::Pause, ..Limits::default() };
    let server = server(limits).await;
    let agent = server.agent_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;
    let session = server.client.session(&agent).await;
    server.model.script([costly_call(), costly_call(), costly()]);
    assert_eq!(stop_of_turn(&server, &session).await["type"], "requires_action");
    let asked = question(&server, &session).await;
    assert_eq!(
        (&asked["type"], &asked["tool"]),
        (&json!("tool_confirmation"), &json!("continue_over_budget"))
    );
    assert_eq!(asked["input"]["budget"], "turn_cost_exceeded");
    assert!(asked["input"]["message"].as_str().unwrap().contains("0.50 of 0.40"), "{asked}");

    // It may use as much again, over a restart too, and is then asked again.
    let server = server.restart().await;
    assert_eq!(answer(&server, &session, "allow").await["type"], "requires_action");
    assert!(question(&server, &session).await["input"]["message"].as_str().unwrap().contains("1.00 of 0.80"));
    assert_eq!(answer(&server, &session, "allow").await["type"], "end_turn");
    let asked_of_model = server.model.requests().last().unwrap().body.to_string();
    assert!(!asked_of_model.contains("continue_over_budget"), "{asked_of_model}");
    // Leave for this turn is none for the next.
    server.model.script([costly_call()]);
    assert_eq!(stop_of_turn(&server, &session).await["type"], "requires_action");
    assert_eq!(answer(&server, &session, "deny").await["code"], "turn_cost_exceeded");
}

#[tokio::test]
async fn sessions_and_agents_can_wait_at_their_budgets_too() {
    let pause = Limits { at_budget: AtBudget::Pause, ..Limits::default() };
    for (limits, code) in [
        (Limits { session_cost_nanos: Some(400_000_000), ..pause }, "session_cost_exceeded"),
        (Limits { agent_day_cost_nanos: Some(400_000_000), ..pause }, "agent_day_budget_exceeded"),
    ] {
        let server = server(limits).await;
        let session = server.session().await;
        server.model.script([costly(), costly()]);
        assert_eq!(stop_of_turn(&server, &session).await["type"], "end_turn");
        assert_eq!(stop_of_turn(&server, &session).await["type"], "requires_action", "{code}");
        assert_eq!(question(&server, &session).await["input"]["budget"], code);
        assert_eq!(answer(&server, &session, "allow").await["type"], "end_turn", "{code}");
        assert_eq!(stop_of_turn(&server, &session).await["type"], "requires_action", "{code}");
        assert_eq!(answer(&server, &session, "deny").await["code"], code);
    }
}

#[tokio::test]
async fn metrics_show_what_was_spent_and_where_it_ended() {
    let limits =
        Limits { turn_cost_nanos: Some(400_000_000), at_budget: AtBudget::Pause, ..Limits::default() };
    let server = server(limits).await;
    let agent = server.agent_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;
    let session = server.client.session(&agent).await;
    server.model.script([costly_call()]);
    stop_of_turn(&server, &session).await;
    answer(&server, &session, "deny").await;
    let shown = crate::operations::metrics(&server).await;
    for line in [
        "petasos_cost_total{provider=\"openai\"} 0.5",
        "petasos_budgets_used_up_total{budget=\"turn_cost_exceeded\",outcome=\"paused\"} 1",
        "petasos_budgets_used_up_total{budget=\"turn_cost_exceeded\",outcome=\"stopped\"} 1",
    ] {
        assert!(shown.contains(line), "{line} is missing in\n{shown}");
    }
}

#[tokio::test]
async fn an_application_finds_the_question_in_either_history() {
    let limits =
        Limits { turn_cost_nanos: Some(400_000_000), at_budget: AtBudget::Pause, ..Limits::default() };
    let server = server(limits).await;
    let agent = server.agent_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;
    let session = server.client.session(&agent).await;
    server.model.script([costly_call()]);
    stop_of_turn(&server, &session).await;
    let asked = question(&server, &session).await;
    for kind in ["full", "compacted"] {
        let path = format!("/aap/sessions/{session}/history?type={kind}");
        let history = server.client.get(&path).await.expect(200)["history"][kind].clone();
        let last = history.as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (&last["role"], &last["content"][0]["toolCallId"], &last["content"][0]["name"]),
            (&json!("assistant"), &asked["id"], &json!("continue_over_budget")),
            "{kind}: {history}"
        );
    }
}
