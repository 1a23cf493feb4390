//! What a system prompt holds besides the instructions.

use petasos_testkit::Reply;
use serde_json::{Value, json};

use crate::world::World;

/// Whether a model is told of a skill, if its agent has these tools.
async fn is_told(world: &World, tools: Value) -> bool {
    let text = "---\nname: brew\ndescription: Makes tea.\n---\nBoil water.";
    let skills = json!([{ "name": "brew", "source": "inline", "content": text }]);
    let id = world.session_with(json!({ "skills": skills, "tools": tools })).await;
    world.model.script([Reply::text("Hello.")]);
    world.turn(&id, "go").await;
    let requests = world.model.requests();
    requests.last().unwrap().body["messages"][0].to_string().contains("skill_view")
}

#[tokio::test]
async fn a_model_that_cannot_load_skills_is_not_told_of_them() {
    let world = World::new().await;
    assert!(is_told(&world, json!([{ "type": "agent_toolset" }])).await);
    let off =
        |name: &str| json!({ "type": "agent_toolset", "configs": [{ "name": name, "enabled": false }] });
    assert!(is_told(&world, json!([off("terminal")])).await);
    assert!(!is_told(&world, json!([off("skill_view")])).await);
    assert!(!is_told(&world, json!([{ "type": "custom_tool", "name": "check_order" }])).await);
}
