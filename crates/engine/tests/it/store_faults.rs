//! A store that fails for a moment, or in the middle of a request: the session is there afterwards.

use petasos_core::event::{Payload, StopReason, ToolEffect};
use petasos_engine::{Error, Grace, Start};
use petasos_testkit::tools::CountingTool;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::store::Moment;
use crate::world::{Setup, World, check_log, last_stop, live_text, message, results, steer};

#[tokio::test]
async fn what_nobody_can_send_again_is_written_again() {
    let tool = CountingTool::new("write_note", ToolEffect::SideEffect).held_up();
    let world = World::with(Setup::default().with_tool(&tool)).await;
    let id = world.trusting_session().await;
    world.model.script([Reply::tool_call("write_note", json!({ "text": "milk" })), Reply::text("Noted.")]);
    let mut reader = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    tool.wait_for_start().await;
    world.store.fail_next(2);
    tool.let_one_finish();
    assert_eq!(last_stop(&reader.until_idle().await), &StopReason::end_turn());
    let log = world.log(&id).await;
    check_log(&log);
    assert_eq!((tool.runs(), results(&log)), (1, vec!["milk".to_owned()]));
}

#[tokio::test]
async fn what_somebody_sends_fails_at_once_and_can_be_sent_again() {
    let world = World::new().await;
    let id = world.session().await;
    world.store.fail_next(1);
    let refused = world.message(&id, "go").await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
    world.model.script([Reply::text("Hello.")]);
    assert_eq!(last_stop(&world.turn(&id, "go").await), &StopReason::end_turn());
}

#[tokio::test]
async fn a_bug_below_an_actor_does_not_leave_the_session_out_of_reach() {
    let world = World::new().await;
    let id = world.session().await;
    world.store.panic_next();
    let refused = world.send(&id, message("go")).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");

    // The same in the middle of a turn.
    let gate = Gate::new();
    world.model.script([Reply::text("Lost").gate(&gate), Reply::text("Found.")]);
    let mut reader = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    within("the model call", gate.reached()).await;
    world.store.panic_next();
    let refused = world.send(&id, steer("one")).await;
    assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
    world.send(&id, steer("two")).await.unwrap();
    assert_eq!(last_stop(&reader.until_idle().await), &StopReason::end_turn());
    check_log(&world.log(&id).await);
}

#[tokio::test]
async fn the_model_is_asked_while_the_message_is_written_and_is_not_heard_before() {
    let world = World::new().await;
    let id = world.session().await;
    world.model.script([Reply::text("Too early."), Reply::text("Hello.")]);
    world.store.stop_at(1, Moment::Before);
    let mut reader = world.follow(&id, Start::Now).await;
    tokio::select! {
        sent = world.message(&id, "go") => panic!("a message that is not written was answered: {sent:?}"),
        () = within("a model call", world.model.wait_for_requests(1)) => {}
    }
    let world = world.restart().await;
    assert_eq!(reader.next().await, None);
    assert_eq!(world.log(&id).await, []);
    assert_eq!(live_text(&world.turn(&id, "go").await), "Hello.");
}

#[tokio::test]
async fn who_is_cut_off_after_the_commit_is_not_told_to_send_it_again() {
    let world = World::new().await;
    let id = world.session().await;
    world.store.stop_at(1, Moment::After);
    let stop = async {
        world.store.stopped().await;
        world.engine.shutdown(Grace::NONE).await;
    };
    let (answer, ()) = tokio::join!(world.message(&id, "Hi"), stop);
    assert!(matches!(answer, Err(Error::CutOff)), "{answer:?}");
    assert!(world.log(&id).await.iter().any(|event| matches!(event.payload, Payload::UserMessage(_))));
}
