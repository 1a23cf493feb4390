//! A store without room in the middle of a turn: nothing half-written, and all is well once there is room.

use petasos_core::event::{StopReason, ToolEffect};
use petasos_core::ids::SessionId;
use petasos_engine::{Error, Start};
use petasos_testkit::Reply;
use petasos_testkit::tools::CountingTool;
use serde_json::json;

use crate::hooks::{Do, Recorder};
use crate::world::{Setup, World, check_log, last_stop, results, said, steer};

const SMALL: u64 = 400_000;

fn setup() -> Setup {
    Setup { max_store_bytes: Some(SMALL), ..Setup::default() }
}

/// Gives the store room again, and waits until the turn has ended by itself.
async fn with_room(world: World, id: &SessionId) -> World {
    let world = world.restart_with(|setup| setup.max_store_bytes = None).await;
    let items = world.follow(id, Start::After(0)).await.until_idle().await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    check_log(&world.log(id).await);
    world
}

#[tokio::test]
async fn an_answer_that_does_not_fit() {
    let world = World::with(setup()).await;
    let id = world.session().await;
    world.model.script([Reply::text("x".repeat(600_000)), Reply::text("Short.")]);
    world.message(&id, "go").await.unwrap();
    world.store.wait_for_failures(1).await;
    assert_eq!(said(&world.log(&id).await), [""; 0]);
    let world = with_room(world, &id).await;
    assert_eq!(said(&world.log(&id).await), ["Short."]);
}

#[tokio::test]
async fn a_result_that_does_not_fit_is_unknown_and_its_tool_is_not_run_again() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect);
    let hooks = Recorder::new();
    let world = World::with(setup().with_tool(&tool).with_hooks(&hooks)).await;
    let id = world.trusting_session().await;
    hooks.on("transform_tool_result", Do::Say("x".repeat(600_000).leak()));
    world.model.script([Reply::tool_call("write_note", json!({})), Reply::text("I will check.")]);
    world.message(&id, "go").await.unwrap();
    tool.wait_for_start().await;
    world.store.wait_for_failures(1).await;
    let world = with_room(world, &id).await;
    assert_eq!(tool.runs(), 1);
    assert!(results(&world.log(&id).await)[0].contains("outcome is unknown"));
}

#[tokio::test]
async fn what_is_sent_is_refused_and_nothing_of_it_is_kept() {
    let world = World::with(setup()).await;
    let id = world.session().await;
    let refused = world.send(&id, steer(&"x".repeat(600_000))).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
    world.asleep().await;
    assert_eq!(world.log(&id).await, []);
    world.send(&id, steer("short")).await.unwrap();
    world.model.script([Reply::text("Hello.")]);
    assert_eq!(last_stop(&world.turn(&id, "Hi").await), &StopReason::end_turn());
}
