//! Subagents whose work nobody waits for any more when a server starts again.

use petasos_core::event::{Payload, StopReason, UserInterrupt};
use petasos_core::ids::SessionId;
use petasos_core::step::UserEvent;
use petasos_engine::Start;
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::store::Moment;
use crate::world::{World, last_stop, message, said, tenant};

fn interrupt() -> UserEvent {
    UserEvent::Interrupt(UserInterrupt { message: None })
}

/// A session that waits for its subagent, which is about to answer.
async fn delegating(world: &World, gate: &Gate) -> (SessionId, SessionId) {
    let id = world.trusting_session().await;
    world.model.when("go", [Reply::tool_call("delegate_task", json!({ "goal": "Take your time." }))]);
    world.model.when("Take your time.", [Reply::text("Lost").gate(gate), Reply::text("Nobody hears this.")]);
    world.message(&id, "go").await.unwrap();
    within("the subagent", gate.reached()).await;
    let thread = world.engine.threads(&tenant(), &id).await.unwrap()[0].id.session_id();
    (id, thread)
}

/// Sends events whose append is the last that the process makes: the subagent never hears of them.
async fn last_words(world: &World, id: &SessionId, events: Vec<UserEvent>) {
    world.store.stop_at(2, Moment::Before);
    within("an answer", world.engine.send(&tenant(), id, events)).await.unwrap();
    within("the interrupt of the subagent", world.store.stopped()).await;
}

#[tokio::test]
async fn an_interrupt_that_a_crash_kept_from_a_subagent_reaches_it_at_the_next_start() {
    let (world, gate) = (World::new().await, Gate::new());
    let (id, thread) = delegating(&world, &gate).await;
    last_words(&world, &id, vec![interrupt()]).await;
    let world = world.restart().await;
    let items = world.follow(&thread, Start::After(0)).await.until_idle().await;
    assert!(matches!(last_stop(&items), StopReason::EndTurn { interrupted: true, .. }), "{items:?}");
    world.asleep().await;
    assert_eq!(said(&world.log(&thread).await), [""; 0]);
}

#[tokio::test]
async fn a_subagent_is_an_orphan_even_if_its_session_is_busy_with_something_else() {
    let (world, gate, busy) = (World::new().await, Gate::new(), Gate::new());
    let (id, thread) = delegating(&world, &gate).await;
    world.model.when("never mind", [Reply::text("Fine.").gate(&busy), Reply::text("Fine.")]);
    last_words(&world, &id, vec![interrupt(), message("never mind")]).await;
    let world = world.restart().await;
    busy.open();
    let items = world.follow(&thread, Start::After(0)).await.until_idle().await;
    assert!(matches!(last_stop(&items), StopReason::EndTurn { interrupted: true, .. }), "{items:?}");
    world.asleep().await;
    let log = world.log(&id).await;
    assert_eq!(said(&log), ["Fine."]);
    let received = log.iter().filter(|event| matches!(event.payload, Payload::ThreadMessageReceived(_)));
    assert_eq!(received.count(), 0);
}
