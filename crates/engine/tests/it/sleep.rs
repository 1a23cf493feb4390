//! Idle is free: no actor and no feed without a turn or a reader.

use futures_util::future::join_all;
use petasos_core::event::{StopReason, ToolEffect, Verdict};
use petasos_engine::{Error, Item, Start};
use petasos_testkit::Reply;
use petasos_testkit::tools::CountingTool;
use serde_json::{Value, json};

use crate::world::{Setup, World, confirm, last_stop, steer, tenant};

#[tokio::test]
async fn a_session_sleeps_when_its_turn_is_over() {
    let world = World::new().await;
    let id = world.session().await;
    world.model.script([Reply::text("One."), Reply::text("Two.")]);
    world.turn(&id, "go").await;
    world.asleep().await;
    assert_eq!(world.engine.held_sessions(), 0);
    assert_eq!(last_stop(&world.turn(&id, "again").await), &StopReason::end_turn());
}

#[tokio::test]
async fn a_pause_is_sleep_too() {
    let world = World::new().await;
    let id = world.session_with(json!({ "model": "demo/fast" })).await;
    let items = world.turn(&id, "ask me Which one? red | blue").await;
    assert!(matches!(last_stop(&items), StopReason::RequiresAction { .. }));
    world.asleep().await;
    assert_eq!(world.engine.held_sessions(), 0);
    assert_eq!(world.pending(&id).await.len(), 1);
}

#[tokio::test]
async fn a_thousand_approvals_wait_without_a_task_and_over_a_restart() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let world = World::with(Setup::default().with_tool(&tool)).await;
    world.model.respond(|request| {
        let has_result = |message: &Value| message["role"] == "tool";
        let answered = request.body["messages"].as_array().is_some_and(|all| all.iter().any(has_result));
        if answered { Reply::text("Noted.") } else { Reply::tool_call("write_note", json!({ "text": "x" })) }
    });
    let ids = join_all((0..1000).map(|_| world.session())).await;
    let sent = join_all(ids.iter().map(|id| world.message(id, "go"))).await;
    assert!(sent.iter().all(Result::is_ok));
    world.asleep().await;
    assert_eq!((world.engine.awake_sessions(), world.engine.held_sessions()), (0, 0));

    let world = world.restart().await;
    assert_eq!(world.engine.awake_sessions(), 0);
    let answers = ids.iter().map(|id| async {
        let pending = world.pending(id).await;
        world.send(id, confirm(&pending[0], Verdict::Allow)).await
    });
    assert!(join_all(answers).await.iter().all(Result::is_ok));
    world.asleep().await;
    assert_eq!(tool.runs(), 1000);
    for id in &ids {
        assert_eq!(world.detail(id).await.state.view.stop_reason, Some(StopReason::end_turn()));
    }
}

#[tokio::test]
async fn a_reader_holds_no_actor_and_sees_what_comes() {
    let world = World::new().await;
    let id = world.session().await;
    world.send(&id, steer("be kind")).await.unwrap();
    world.asleep().await;
    let mut readers = Vec::new();
    for start in [Start::Now, Start::After(0), Start::After(1), Start::After(1000)] {
        readers.push(world.follow(&id, start).await);
    }
    assert_eq!(readers[1].next().await.map(|item| matches!(item, Item::Durable(_))), Some(true));
    assert_eq!((world.engine.awake_sessions(), world.engine.held_sessions()), (0, 1));
    world.model.script([Reply::text("Hello.")]);
    world.message(&id, "Hi").await.unwrap();
    for reader in &mut readers {
        let items = reader.until_idle().await;
        let durable = items.iter().filter_map(|item| match item {
            Item::Durable(event) => Some(event.sequence),
            Item::Live(_) => None,
        });
        let expected: Vec<u64> = (2..=durable.clone().next_back().unwrap()).collect();
        assert_eq!(durable.collect::<Vec<_>>(), expected);
    }
    world.asleep().await;
    drop(readers);
    assert_eq!(world.engine.held_sessions(), 0);
}

#[tokio::test]
async fn readers_end_with_the_engine() {
    let world = World::new().await;
    let id = world.session().await;
    let mut reader = world.follow(&id, Start::Now).await;
    let stopped = world.engine.clone();
    let _world = world.restart().await;
    assert_eq!(reader.next().await, None);
    let refused = stopped.follow(&tenant(), &id, Start::Now).await.err();
    assert!(matches!(refused, Some(Error::ShuttingDown)), "{refused:?}");
    let refused = stopped.send(&tenant(), &id, vec![steer("late")]).await;
    assert!(refused.is_err(), "{refused:?}");
    drop(reader);
    assert_eq!(stopped.held_sessions(), 0);
}
