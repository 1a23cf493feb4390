//! Commands that do not behave.

use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn wrong_arguments_are_named() {
    let world = World::new();
    assert!(world.error("terminal", json!({})).await.contains("missing field `command`"));
    assert!(world.error("terminal", json!({ "command": 5 })).await.contains("invalid type"));
    let unknown = world.error("terminal", json!({ "command": "ls", "cwd": "x" })).await;
    assert!(unknown.contains("cwd") && unknown.contains("workdir"), "{unknown}");
    assert!(world.error("process", json!({ "action": "dance" })).await.contains("dance"));
}

#[tokio::test]
async fn a_huge_command_is_refused() {
    let world = World::new();
    let text = world.error("terminal", json!({ "command": "x".repeat(10 << 20) })).await;
    assert!(text.contains("10485760 bytes"), "{text}");
}

#[tokio::test]
async fn binary_output_goes_to_a_file() {
    let world = World::new();
    let result = world.ok("terminal", json!({ "command": "head -c 5000 /dev/zero" })).await;
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("[5000 bytes of binary data, in .petasos/output/"), "{output}");
    let result = world.ok("terminal", json!({ "command": "printf '\\377\\376 text'" })).await;
    assert!(result["output"].as_str().unwrap().ends_with(" text"));
}

#[tokio::test]
async fn long_output_keeps_both_ends_and_the_rest_is_in_a_file() {
    let world = World::new();
    let result = world.ok("terminal", json!({ "command": "seq 1 100000" })).await;
    let output = result["output"].as_str().unwrap();
    assert!(output.starts_with("1\n2\n") && output.ends_with("99999\n100000\n"), "{output}");
    assert!(output.len() < 40_000);
    let path = output.split("all of it is in ").nth(1).unwrap().split(' ').next().unwrap();
    let kept = std::fs::read_to_string(world.workspace().join(path)).unwrap();
    assert_eq!(kept.lines().count(), 100_000);
    let read = world.ok("read_file", json!({ "path": path, "offset": 50_000, "limit": 1 })).await;
    assert_eq!(read["content"], "50000|50000\n");
}

#[tokio::test]
async fn endless_output_ends_with_the_time() {
    let world = World::new();
    let text = world.error("terminal", json!({ "command": "yes", "timeout": 1 })).await;
    assert!(text.contains("y\\ny\\n") && text.contains("was ended") && text.len() < 80_000);
    let files = std::fs::read_dir(world.workspace().join(".petasos/output")).unwrap();
    let size: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert!(size < 12 << 20, "{size}");
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed() {
    let world = World::new();
    let command = "trap 'echo deaf' TERM; while :; do :; done";
    let text = world.error("terminal", json!({ "command": command, "timeout": 1 })).await;
    assert!(text.contains("deaf") && text.contains("was ended"), "{text}");
}

#[tokio::test]
async fn what_writes_after_the_end_of_its_command_is_not_heard() {
    let world = World::new();
    let command = "(trap '' HUP TERM; sleep 60; echo late) & echo first";
    let result = world.ok("terminal", json!({ "command": command })).await;
    assert_eq!(result["output"], "first\n");
    assert!(result["note"].as_str().unwrap().contains("were ended"), "{result}");
}
