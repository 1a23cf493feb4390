//! Commands in the background.

use serde_json::{Value, json};

use crate::world::World;

async fn start(world: &World, command: &str) -> String {
    let result = world.ok("terminal", json!({ "command": command, "background": true })).await;
    result["process_id"].as_str().unwrap().to_owned()
}

async fn process(world: &World, action: &str, id: &str, more: Value) -> Value {
    let mut input = json!({ "action": action, "process_id": id });
    for (name, value) in more.as_object().into_iter().flatten() {
        input[name] = value.clone();
    }
    world.ok("process", input).await
}

/// Polls until the output has these words.
async fn until(world: &World, id: &str, words: &str) -> String {
    let mut output = String::new();
    petasos_testkit::within(words, async {
        while !output.contains(words) {
            output += process(world, "poll", id, json!({})).await["output"].as_str().unwrap();
            tokio::task::yield_now().await;
        }
    })
    .await;
    output
}

#[tokio::test]
async fn a_process_is_talked_to_and_waited_for() {
    let world = World::new();
    let id = start(&world, "echo ready; while read line; do echo got $line; done; echo bye; exit 7").await;
    until(&world, &id, "ready").await;
    process(&world, "submit", &id, json!({ "data": "one" })).await;
    process(&world, "write", &id, json!({ "data": "two\n" })).await;
    until(&world, &id, "got two").await;
    let listed = world.ok("process", json!({ "action": "list" })).await;
    assert_eq!(listed["processes"][0]["status"], "running");
    process(&world, "close", &id, json!({})).await;
    let result = process(&world, "wait", &id, json!({})).await;
    assert_eq!((result["status"].as_str(), result["exit_code"].as_i64()), (Some("ended"), Some(7)));
    let log = process(&world, "log", &id, json!({})).await;
    assert_eq!(log["output"], "ready\ngot one\ngot two\nbye\n");
    assert!(
        world
            .error("process", json!({ "action": "submit", "process_id": id, "data": "x" }))
            .await
            .contains("closed")
    );
}

#[tokio::test]
async fn a_command_in_pieces_is_not_put_together() {
    let world = World::new();
    let id = start(&world, "while read line; do echo got $line; done").await;
    process(&world, "write", &id, json!({ "data": "rm " })).await;
    let submit = json!({ "action": "submit", "process_id": id, "data": "-rf /" });
    assert!(world.error("process", submit).await.contains("with what is in its line already"));
    process(&world, "submit", &id, json!({ "data": "" })).await;
    process(&world, "submit", &id, json!({ "data": "end" })).await;
    assert_eq!(until(&world, &id, "got end").await, "got rm\ngot end\n");
}

#[tokio::test]
async fn a_process_can_be_killed_and_belongs_to_its_workspace() {
    let world = World::new();
    let id = start(&world, "echo $$; sleep 600").await;
    until(&world, &id, "\n").await;
    let waited = process(&world, "wait", &id, json!({ "timeout": 0 })).await;
    assert_eq!(waited["status"], "running");
    let mut other = world.invocation(json!({ "action": "kill", "process_id": id }));
    other.user_id = Some("eve".to_owned());
    assert!(world.call("process", other).await.text.contains("There is no process"));
    let result = process(&world, "kill", &id, json!({})).await;
    assert_eq!(result["status"], "ended");
    petasos_testkit::no_command_below(&world.workspace()).await;
}

#[tokio::test]
async fn there_can_only_be_so_many() {
    let world = World::new();
    for _ in 0..16 {
        start(&world, "sleep 600").await;
    }
    let input = json!({ "command": "sleep 600", "background": true });
    assert!(world.error("terminal", input).await.contains("16 commands run"));
}
