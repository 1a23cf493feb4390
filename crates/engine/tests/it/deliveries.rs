//! What an append puts into the outbox, whatever happens to the append.

use petasos_core::delivery::Subject;
use petasos_core::ids::SessionId;
use petasos_store::DeliveryFilter;
use petasos_testkit::receiver::{Received, Receiver};
use petasos_testkit::{Gate, Reply, within};
use serde_json::json;

use crate::store::Moment;
use crate::world::{Setup, World, message, tenant};

async fn world() -> (World, Receiver) {
    let receiver = Receiver::start().await;
    let setup = Setup { event_webhook_url: Some(receiver.url.clone()), ..Setup::default() };
    let world = World::with(setup).await;
    world.engine.recover().await.unwrap();
    (world, receiver)
}

/// The offsets that were put into the outbox, in order.
async fn offsets(world: &World, id: &SessionId) -> Vec<u64> {
    let filter = DeliveryFilter { session_id: Some(id.clone()), ..DeliveryFilter::default() };
    let page = petasos_store::PageRequest { after: None, limit: 1000 };
    let found = world.engine.deliveries(&tenant(), filter, page).await.unwrap();
    let offset = |subject: &Subject| match subject {
        Subject::Event { offset, .. } => *offset,
        Subject::Callback { .. } => panic!("no run has a callback here"),
    };
    found.items.iter().rev().map(|delivery| offset(&delivery.subject)).collect()
}

fn arrived(received: &[Received]) -> Vec<u64> {
    let mut offsets: Vec<u64> = received.iter().map(Received::offset).collect();
    offsets.dedup();
    offsets
}

#[tokio::test]
async fn every_event_is_in_the_outbox_exactly_once_over_failing_appends() {
    let (world, receiver) = world().await;
    let session = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::empty().gate(&gate).and_text("Done.")]);
    world.engine.send(&tenant(), &session, vec![message("go")]).await.unwrap();
    gate.reached().await;
    world.store.fail_next(2);
    gate.open();
    world.asleep().await;
    let last = world.detail(&session).await.state.view.last_sequence;
    let expected: Vec<u64> = (0..last).collect();
    assert_eq!(offsets(&world, &session).await, expected);
    let received = receiver.wait_for(expected.len()).await;
    assert_eq!(arrived(&received), expected);
}

#[tokio::test]
async fn a_process_that_dies_around_a_commit_delivers_all_that_was_committed() {
    for moment in [Moment::Before, Moment::After] {
        let (world, receiver) = world().await;
        let session = world.session().await;
        world.model.script([Reply::text("Done."), Reply::text("Done.")]);
        world.store.stop_at(2, moment);
        world.engine.send(&tenant(), &session, vec![message("go")]).await.unwrap();
        within("the store to stop", world.store.stopped()).await;
        let world = world.restart().await;
        world.asleep().await;
        let last = world.detail(&session).await.state.view.last_sequence;
        let expected: Vec<u64> = (0..last).collect();
        assert_eq!(offsets(&world, &session).await, expected, "{moment:?}");
        let all = receiver.wait_until(|received| arrived(received).len() >= expected.len()).await;
        assert_eq!(arrived(&all), expected, "{moment:?}");
    }
}

#[tokio::test]
async fn subagents_deliver_nothing_of_their_own() {
    let (world, _receiver) = world().await;
    let session = world.session_with(json!({ "tools": [{ "type": "agent_toolset" }] })).await;
    let call = Reply::tool_call("delegate_task", json!({ "tasks": [{ "goal": "Count." }] }));
    world.model.script([call, Reply::text("Three."), Reply::text("Done.")]);
    world.engine.send(&tenant(), &session, vec![message("go")]).await.unwrap();
    world.asleep().await;
    let page = petasos_store::PageRequest { after: None, limit: 1000 };
    let all = world.engine.deliveries(&tenant(), DeliveryFilter::default(), page).await.unwrap();
    assert!(all.items.iter().all(|delivery| *delivery.subject.session_id() == session));
    assert!(!all.items.is_empty());
}
