//! What goes with a session whose log cannot be read.

use petasos_core::conversation::{ConversationChange, Mode};
use petasos_core::ids::{RoutineId, RunId, SessionId};
use petasos_core::run::RunStatus;
use petasos_engine::{Error, SessionChange, Start, Trigger, Triggered};
use petasos_testkit::{Reply, within};
use petasos_tools::SessionWorkspace;
use serde_json::json;

use crate::hooks::Recorder;
use crate::world::{Setup, World, tenant};

/// A session that is read from its log whenever it wakes, because its agent is told so much.
async fn session(world: &World) -> SessionId {
    let policy = json!({ "permissionPolicy": { "type": "always_allow" } });
    let tools = json!([{ "type": "agent_toolset", "defaultConfig": policy }]);
    world.session_with(json!({ "instructions": "a".repeat(500_000), "tools": tools })).await
}

/// A run that waits for a session in which a person answers.
async fn waiting_run(world: &World, id: &SessionId) -> RunId {
    let conversation = ConversationChange { mode: Some(Mode::Manual), ..ConversationChange::default() };
    let change = SessionChange { conversation: Some(conversation), ..SessionChange::default() };
    world.engine.change_session(&tenant(), id, change).await.unwrap();
    let routine: RoutineId = "kyc".parse().unwrap();
    let definition = serde_json::from_value(json!({ "agent": { "model": "openai/scripted" } })).unwrap();
    world.engine.put_routine(&tenant(), &routine, definition).await.unwrap();
    let trigger = Trigger { session_id: Some(id.clone()), ..Trigger::default() };
    let Triggered::Accepted(run) = world.engine.trigger(&tenant(), &routine, trigger).await.unwrap() else {
        panic!("there was no such run")
    };
    run.id
}

#[tokio::test]
async fn everything_goes_with_a_damaged_session_that_can_be_found_without_its_log() {
    let (hooks, directory) = (Recorder::new(), tempfile::tempdir().unwrap());
    let tools = petasos_testkit::tools::builtin(directory.path().to_owned());
    let world = World::with(Setup { tools, ..Setup::default() }.with_hooks(&hooks)).await;
    let id = session(&world).await;
    world
        .model
        .when("go", [Reply::tool_call("delegate_task", json!({ "goal": "Look." })), Reply::text("Done.")]);
    world.model.when("Look.", [Reply::text("Seen.")]);
    world.turn(&id, "go").await;
    let thread = world.engine.threads(&tenant(), &id).await.unwrap()[0].id.session_id();
    let run = waiting_run(&world, &id).await;
    let agent_id = world.engine.session(&tenant(), &id).await.unwrap().header.agent_id;
    let own = SessionWorkspace { tenant: tenant(), agent_id, session_id: id.clone() };
    let files = world.setup.tools.workspaces().unwrap().path_of(&own);
    std::fs::create_dir_all(files.join("build")).unwrap();
    let mut reader = world.follow(&id, Start::Now).await;
    world.asleep().await;

    world.store.damage(&id);
    world.engine.delete_session(&tenant(), &id).await.unwrap();
    assert_eq!(reader.next().await, None);
    for gone in [&id, &thread] {
        let found = world.engine.session(&tenant(), gone).await;
        assert!(matches!(found, Err(Error::NotFound { .. })), "{gone}: {found:?}");
    }
    assert_eq!(world.engine.run(&tenant(), &run).await.unwrap().status, RunStatus::Failed);
    // The subagent's end is told too.
    hooks.wait_for("on_session_finalize", 2).await;
    within("the files to go", async {
        while files.exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
