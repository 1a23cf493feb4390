//! Sessions that are changed, put away and removed.

use petasos_core::event::{Payload, StopReason};
use petasos_core::step::Refusal;
use petasos_engine::{Error, SessionChange, Start};
use petasos_testkit::{Gate, Reply, within};
use serde_json::{Map, json};

use crate::hooks::Recorder;
use crate::world::{Setup, World, tenant};

#[tokio::test]
async fn a_change_is_made_whole_or_not_at_all() {
    let world = World::new().await;
    let id = world.session().await;
    let too_much: Map<_, _> = [("key".to_owned(), json!("x".repeat(100_000)))].into_iter().collect();
    let change = SessionChange {
        title: Some(Some("New".to_owned())),
        metadata: Some(too_much),
        ..SessionChange::default()
    };
    let refused = world.engine.change_session(&tenant(), &id, change).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(world.engine.session(&tenant(), &id).await.unwrap().view.title, None);
    assert_eq!(world.log(&id).await, []);
}

#[tokio::test]
async fn archiving_ends_the_turn_and_is_told_once() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("Well").gate(&gate)]);
    world.message(&id, "go").await.unwrap();
    within("the model call", gate.reached()).await;
    for _ in 0..2 {
        let archived = world.engine.archive_session(&tenant(), &id).await.unwrap();
        assert!(archived.view.archived_at.is_some());
    }
    let refused = world.message(&id, "hello?").await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::Archived))), "{refused:?}");
    let log = world.log(&id).await;
    let stops = log.iter().filter(|event| {
        matches!(&event.payload, Payload::StatusIdle(idle)
            if idle.stop_reason == StopReason::EndTurn { reason: None, interrupted: true })
    });
    assert_eq!(stops.count(), 1);
    hooks.wait_for("on_session_finalize", 1).await;
    // Stopping waits for what observers are being told, so nothing more can come.
    let _world = world.restart().await;
    assert_eq!(
        hooks.order(&["on_session_end", "on_session_finalize"]),
        ["on_session_end", "on_session_finalize"]
    );
}

#[tokio::test]
async fn deleting_ends_the_turn_its_readers_and_its_log() {
    let hooks = Recorder::new();
    let world = World::with(Setup::default().with_hooks(&hooks)).await;
    let id = world.session().await;
    let gate = Gate::new();
    world.model.script([Reply::text("Well").gate(&gate)]);
    let mut reader = world.follow(&id, Start::Now).await;
    world.message(&id, "go").await.unwrap();
    within("the model call", gate.reached()).await;
    within("the deletion", world.engine.delete_session(&tenant(), &id)).await.unwrap();
    while reader.next().await.is_some() {}
    within("the model to notice", world.model.wait_for_disconnects(1)).await;
    let gone = world.message(&id, "hello?").await;
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
    hooks.wait_for("on_session_finalize", 1).await;
    world.asleep().await;
}
