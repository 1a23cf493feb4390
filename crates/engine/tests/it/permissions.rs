//! What people have allowed, for a session and for good.

use petasos_core::event::{Scope, StopReason, Verdict};
use petasos_core::ids::{AgentId, SessionId};
use petasos_core::step::UserEvent;
use petasos_engine::{NewSession, Start};
use petasos_testkit::Reply;
use serde_json::json;

use crate::world::{World, confirm, last_stop, tenant};

/// An agent whose tools never ask by policy.
async fn trusted_agent(world: &World) -> AgentId {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    let definition = json!({ "name": "Test", "model": "openai/scripted", "tools": tools });
    let definition = serde_json::from_value(definition).unwrap();
    world.engine.create_agent(&tenant(), None, definition).await.unwrap().id
}

async fn session_of_ada(world: &World, agent: &AgentId) -> SessionId {
    let user_id = Some("ada".to_owned());
    let new = NewSession { user_id, platform: "api".to_owned(), ..NewSession::default() };
    world.engine.create_session(&tenant(), agent, new).await.unwrap().header.id
}

/// Lets the model run a command, and says whether a person was asked. If so, they allow it.
async fn asks(world: &World, id: &SessionId, command: &str, scope: Scope) -> bool {
    let call = Reply::tool_call("terminal", json!({ "command": command }));
    world.model.script([call, Reply::text("Done.")]);
    let mut follower = world.follow(id, Start::Now).await;
    world.message(id, "go").await.unwrap();
    let items = follower.until_idle().await;
    let asked = matches!(last_stop(&items), StopReason::RequiresAction { .. });
    if asked {
        let call = world.pending(id).await.remove(0);
        let UserEvent::ToolConfirmation(mut answer) = confirm(&call, Verdict::Allow) else { panic!() };
        answer.scope = scope;
        world.send(id, UserEvent::ToolConfirmation(answer)).await.unwrap();
        follower.until_idle().await;
    }
    asked
}

#[tokio::test]
async fn what_is_allowed_for_good_and_what_is_allowed_here_are_allowed_together() {
    let world = World::new().await;
    let agent = trusted_agent(&world).await;
    let earlier = session_of_ada(&world, &agent).await;
    assert!(asks(&world, &earlier, "rm -r build", Scope::Always).await);
    let id = session_of_ada(&world, &agent).await;
    assert!(asks(&world, &id, "git push --force", Scope::Session).await);
    assert!(!asks(&world, &id, "rm -r build; git push --force", Scope::Once).await);
    assert!(asks(&world, &id, "rm -r build; truncate -s 0 a", Scope::Once).await);
    // Elsewhere only the one is allowed.
    let other = session_of_ada(&world, &agent).await;
    assert!(asks(&world, &other, "rm -r build; git push --force", Scope::Once).await);
}
