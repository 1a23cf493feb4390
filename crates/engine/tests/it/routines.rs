//! Routines, without a surface.

use petasos_core::ids::RoutineId;
use petasos_engine::{Error, RoutinePut};
use serde_json::{Value, json};

use crate::world::{World, tenant};

async fn put(world: &World, tool: Value) -> petasos_engine::Result<RoutinePut> {
    let toolset = json!({ "type": "agent_toolset", "configs": [tool] });
    let definition = json!({ "agent": { "model": "openai/scripted", "tools": [toolset] } });
    let id: RoutineId = "kyc".parse().unwrap();
    world.engine.put_routine(&tenant(), &id, serde_json::from_value(definition).unwrap()).await
}

#[tokio::test]
async fn a_field_of_a_toolset_that_means_nothing_is_refused_at_every_change() {
    let world = World::new().await;
    let (right, wrong) =
        (json!({ "name": "terminal", "enabled": false }), json!({ "name": "terminal", "disabled": true }));
    for known in [false, true] {
        match put(&world, wrong.clone()).await {
            Err(Error::Invalid { field, .. }) => assert_eq!(field, "agent.tools[0].configs[0].disabled"),
            other => panic!("known: {known}, {other:?}"),
        }
        put(&world, right.clone()).await.unwrap();
    }
}
