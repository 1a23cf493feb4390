//! Notes and crashes: what the log says was kept is kept.

use petasos_core::memory::UserScope;
use petasos_engine::{NewSession, Start};
use petasos_testkit::within;

use crate::store::Moment;
use crate::world::{World, results, tenant};

#[tokio::test]
async fn a_note_is_durable_before_its_result_is_in_the_log() {
    let world = World::new().await;
    let definition = serde_json::json!({ "name": "Test", "model": "demo/fast" });
    let definition = serde_json::from_value(definition).unwrap();
    let agent = world.engine.create_agent(&tenant(), None, definition).await.unwrap();
    let scope = UserScope { tenant: tenant(), agent_id: agent.id.clone(), user_id: "anna".to_owned() };
    let new =
        NewSession { user_id: Some("anna".to_owned()), platform: "api".to_owned(), ..NewSession::default() };
    let id = world.engine.create_session(&tenant(), &agent.id, new).await.unwrap().header.id;
    // The message, the call with its start, and then the result.
    world.store.stop_at(3, Moment::Before);
    world.message(&id, "remember Anna drinks tea.").await.unwrap();
    within("the result", world.store.stopped()).await;
    let kept = world.engine.memories(&scope).await.unwrap();
    assert_eq!(kept.iter().map(|entry| entry.content.as_str()).collect::<Vec<_>>(), ["Anna drinks tea."]);

    let world = world.restart().await;
    let mut reader = world.follow(&id, Start::After(0)).await;
    reader.until_idle().await;
    assert_eq!(world.engine.memories(&scope).await.unwrap(), kept, "it is not written twice");
    let log = world.log(&id).await;
    let told = results(&log);
    assert!(told.iter().any(|text| text.contains("outcome is unknown")), "{told:?}");
}
