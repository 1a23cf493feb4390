//! Turns from end to end, through `send` and `follow`.

use futures_util::future::join_all;
use petasos_core::event::{Payload, StopReason, ToolEffect, UserInterrupt};
use petasos_core::session::Status;
use petasos_core::step::{Refusal, UserEvent};
use petasos_engine::{Error, Item, LiveKind, Start};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::world::{
    Setup, World, check_log, last_stop, live_text, message, results, said, steer, stop_of, tenant,
};

#[tokio::test]
async fn a_message_becomes_an_answer() {
    let world = World::new().await;
    let id = world.session().await;
    world.model.script([Reply::thinking("Hm.").and_text("Hello to you.")]);
    let mut follower = world.follow(&id, Start::After(0)).await;
    let accepted = world.message(&id, "Hello").await.unwrap();
    assert_eq!(accepted.len(), 1);
    assert_eq!((accepted[0].sequence, accepted[0].payload.type_name()), (1, "user.message"));
    let items = follower.until_idle().await;
    assert_eq!(live_text(&items), "Hello to you.");
    let thought = |item: &Item| matches!(item, Item::Live(live) if live.kind == LiveKind::Thinking);
    assert!(items.iter().any(thought));
    let types: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            Item::Durable(event) => Some(event.payload.type_name()),
            Item::Live(_) => None,
        })
        .collect();
    let expected = [
        "user.message",
        "session.status_running",
        "span.model_started",
        "span.model_finished",
        "agent.thinking",
        "agent.message",
        "session.titled",
        "session.status_idle",
    ];
    assert_eq!(types, expected);
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    let view = world.detail(&id).await.state.view;
    assert_eq!((view.status, view.model_calls, view.usage.total()), (Status::Idle, 1, 15));
}

#[tokio::test]
async fn the_demo_model_needs_no_server() {
    let world = World::new().await;
    let id = world.session_with(json!({ "model": "demo/fast" })).await;
    world.turn(&id, "todo wash, dry").await;
    let log = world.log(&id).await;
    check_log(&log);
    assert!(said(&log)[0].starts_with("todo answered"), "{:?}", said(&log));
}

#[tokio::test]
async fn tools_run_side_by_side_and_answer_in_the_order_of_the_calls() {
    let (first, second) = (
        CountingTool::new("first", ToolEffect::ReadOnly).held_up(),
        CountingTool::new("second", ToolEffect::ReadOnly),
    );
    let world = World::with(Setup::default().with_tool(&first).with_tool(&second)).await;
    let id = world.session().await;
    let calls = [("first", json!({ "text": "one" })), ("second", json!({ "text": "two" }))];
    world.model.script([Reply::tool_calls(calls), Reply::text("Done.")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    first.wait_for_start().await;
    follower
        .until(|item| matches!(item, Item::Durable(event) if matches!(event.payload, Payload::ToolResult(_))))
        .await;
    first.let_one_finish();
    follower.until_idle().await;
    let log = world.log(&id).await;
    check_log(&log);
    assert_eq!(results(&log), ["two", "one"]);
    let told = world.model.requests()[1].body["messages"].to_string();
    assert!(told.find("one") < told.find("two"), "{told}");
}

#[tokio::test]
async fn an_interrupt_keeps_what_was_said_and_hangs_up() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("Well, ").gate(&gate).and_text("never mind."), Reply::text("Yes?")]);
    let mut follower = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    follower.until(|item| matches!(item, Item::Live(live) if live.text == "Well, ")).await;
    let refused = world.message(&id, "hello?").await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::TurnInProgress { .. }))), "{refused:?}");
    world.send(&id, UserEvent::Interrupt(UserInterrupt { message: None })).await.unwrap();
    let items = follower.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::EndTurn { reason: None, interrupted: true });
    within("the model to notice", world.model.wait_for_disconnects(1)).await;
    assert_eq!(last_stop(&world.turn(&id, "hello?").await), &StopReason::end_turn());
    assert_eq!(said(&world.log(&id).await), ["Well, ", "Yes?"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn three_hundred_senders_all_get_an_answer() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("One").gate(&gate)]);
    world.message(&id, "go").await.unwrap();
    let tenant = tenant();
    let sends = (0..300).map(|number| world.engine.send(&tenant, &id, vec![steer(&number.to_string())]));
    let answers = within("300 answers", join_all(sends)).await;
    let taken = answers.iter().filter(|answer| answer.is_ok()).count();
    let busy = |answer: &&Result<_, Error>| matches!(answer, Err(Error::Busy { .. }));
    assert_eq!(taken + answers.iter().filter(busy).count(), 300, "{answers:?}");
    assert!(taken >= 1);
    gate.open();
    let mut follower = world.follow(&id, Start::After(0)).await;
    // A steer that came before the end gets one more model call in the same turn.
    let items = follower.until_idle().await;
    assert_eq!(items.iter().filter(|item| stop_of(item).is_some()).count(), 1);
    let log = world.log(&id).await;
    let kept = log.iter().filter(|event| matches!(event.payload, Payload::UserSteer(_)));
    assert_eq!(kept.count(), taken, "what was accepted is in the log, and nothing else");
    check_log(&log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_run_at_once() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for _ in 0..30 {
        ids.push(world.session_with(json!({ "model": "demo/fast" })).await);
    }
    let turns = join_all(ids.iter().map(|id| world.turn(id, "todo wash"))).await;
    assert!(turns.iter().all(|items| last_stop(items) == &StopReason::end_turn()));
    world.asleep().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_message_of_many_that_race_opens_the_turn() {
    let world = World::new().await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("One").gate(&gate)]);
    let tenant = tenant();
    let sends = (0..20).map(|_| world.engine.send(&tenant, &id, vec![message("go")]));
    let answers = within("20 answers", join_all(sends)).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    gate.open();
}
