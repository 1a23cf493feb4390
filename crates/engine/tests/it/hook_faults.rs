//! Hooks that panic or hang: the session goes on.

use std::time::Duration;

use petasos_core::event::{StopReason, ToolEffect, UserInterrupt};
use petasos_core::step::UserEvent;
use petasos_engine::Grace;
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Reply, within};
use serde_json::json;

use crate::hooks::{AWAITED, BESIDE, Do, Recorder};
use crate::world::{Setup, World, check_log, last_stop, results, tenant};

/// What to say so that the model writes a note. A script is used once, and no turn takes another's.
fn ask_for_note(world: &World, point: &str) -> String {
    let message = format!("{point} please");
    let call = Reply::tool_call("write_note", json!({ "text": "milk" }));
    world.model.when(&message, [call, Reply::text("Noted.")]);
    message
}

/// A turn with a tool and an approval works.
async fn works(world: &World, id: &petasos_core::ids::SessionId) {
    // What an earlier turn left of the script does not matter here.
    world
        .model
        .when("again", [Reply::tool_call("write_note", json!({ "text": "eggs" })), Reply::text("Noted.")]);
    let items = world.turn_with_approval(id, "again").await;
    assert_eq!(last_stop(&items), &StopReason::end_turn());
    check_log(&world.log(id).await);
}

#[tokio::test]
async fn a_hook_that_panics_costs_at_most_the_turn() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("write_note", ToolEffect::SideEffect));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    for point in BESIDE.iter().chain(AWAITED) {
        let id = world.session().await;
        hooks.on(point, Do::Panic);
        let items = world.turn_with_approval(&id, &ask_for_note(&world, point)).await;
        hooks.wait_for(point, 1).await;
        match (*point, last_stop(&items)) {
            // These decide what is done, and nothing is done that they did not agree to.
            ("pre_llm_call" | "pre_tool_call" | "transform_llm_output", StopReason::Error { code, .. }) => {
                assert_eq!(code, "internal", "{point}");
            }
            (_, stop) => assert_eq!(stop, &StopReason::end_turn(), "{point}"),
        }
        let log = world.log(&id).await;
        check_log(&log);
        if !["pre_llm_call", "pre_tool_call"].contains(point) {
            assert_eq!(results(&log), ["milk"], "{point}: what a tool did is not lost");
        }
        hooks.behave();
        works(&world, &id).await;
    }
}

#[tokio::test]
async fn an_observer_that_hangs_holds_up_nothing() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("write_note", ToolEffect::SideEffect));
    let world = World::with(Setup::default().with_tool(&tool).with_hooks(&hooks)).await;
    for point in BESIDE {
        let id = world.session().await;
        hooks.on(point, Do::Hang);
        let items = world.turn_with_approval(&id, &ask_for_note(&world, point)).await;
        assert_eq!(last_stop(&items), &StopReason::end_turn(), "{point}");
        works(&world, &id).await;
        hooks.wait_for(point, 1).await;
        hooks.behave();
    }
    world.asleep().await;
    // They all hang still, and the engine stops in time.
    let _world = world.restart().await;
}

#[tokio::test]
async fn a_hook_that_a_turn_waits_for_is_dropped_with_the_turn() {
    let (hooks, tool) = (Recorder::new(), CountingTool::new("read_note", ToolEffect::ReadOnly));
    let note = CountingTool::new("write_note", ToolEffect::SideEffect);
    let world = World::with(Setup::default().with_tool(&tool).with_tool(&note).with_hooks(&hooks)).await;
    for point in AWAITED {
        let id = world.session().await;
        hooks.on(point, Do::Hang);
        let message = format!("{point} please");
        world.model.when(&message, [Reply::tool_call("read_note", json!({})), Reply::text("Done.")]);
        let before = hooks.order(&[point]).len();
        world.message(&id, &message).await.unwrap();
        hooks.wait_for(point, before + 1).await;
        world.send(&id, UserEvent::Interrupt(UserInterrupt { message: None })).await.unwrap();
        let stop = world.detail(&id).await.state.view.stop_reason;
        assert_eq!(stop, Some(StopReason::EndTurn { reason: None, interrupted: true }), "{point}");
        hooks.behave();
        works(&world, &id).await;
    }
}

#[tokio::test]
async fn a_hook_that_hangs_over_a_deleted_session_does_not_keep_the_engine_from_stopping() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    hooks.on("on_session_end", Do::Hang);
    world.model.script([Reply::text("Hello.")]);
    world.turn(&id, "go").await;
    hooks.wait_for("on_session_end", 1).await;
    // Its files go when its hooks are done, and it has no user, so they are its own.
    world.engine.delete_session(&tenant(), &id).await.unwrap();
    let grace = Grace { turns: Duration::from_secs(3600), hooks: Duration::ZERO };
    within("the engine to stop, without time for turns that are none", world.engine.shutdown(grace)).await;
    assert_eq!(hooks.order(&["on_session_finalize"]), [""; 0]);
}
