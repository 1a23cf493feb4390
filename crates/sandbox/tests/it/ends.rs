//! Commands end, and everything with them.

use futures_util::future::join_all;

use petasos_sandbox::{Kernel, Settings};

use crate::world::{World, finish, line};

#[tokio::test]
async fn a_command_returns_its_output_and_its_code() {
    let finished = World::new().run("echo out; echo err >&2; exit 3").await;
    assert_eq!(finished.output, "out\nerr\n");
    assert_eq!((finished.ended.code, finished.ended.signal), (Some(3), None));
    let finished = World::new().run("kill -9 $$").await;
    assert_eq!((finished.ended.code, finished.ended.signal), (None, Some(9)));
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let world = World::new();
    let mut command = world.command("true");
    command.arguments = vec!["no-such-program".to_owned()];
    let finished = finish(world.sandbox.start(command).unwrap()).await;
    assert_eq!(finished.ended.problem.unwrap(), "the program no-such-program is not there");
    let mut command = world.command("true");
    command.directory = world.workspace().join("gone");
    let problem = finish(world.sandbox.start(command).unwrap()).await.ended.problem.unwrap();
    assert!(problem.ends_with("gone is not there"), "{problem}");
    let long = world.sandbox.start(world.command(&"x".repeat(200_000))).err().unwrap();
    assert!(long.to_string().contains("200000 bytes"), "{long}");
}

/// A daemon: in a session of its own, its parent gone, deaf to SIGTERM and SIGHUP. It says its id, then makes a file.
const DAEMON: &str = r#"
setsid bash -c 'trap "" TERM HUP INT; (trap "" TERM HUP; echo $BASHPID; echo x > left; while :; do sleep 60; done) & ' &
"#;

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended() {
    let world = World::new();
    let finished = world.run(&format!("{DAEMON} until [ -s left ]; do sleep 0.01; done")).await;
    assert_eq!(finished.ended.code, Some(0), "{finished:?}");
    assert!(finished.ended.left_running >= 1, "{finished:?}");
    world.is_empty().await;
}

#[tokio::test]
async fn dropping_a_process_ends_its_whole_tree() {
    let world = World::new();
    let mut process = world.start(&format!("{DAEMON} sleep 60"));
    line(&mut process).await;
    drop(process);
    world.is_empty().await;
}

#[tokio::test]
async fn a_command_that_ignores_to_be_terminated_is_killed() {
    let world = World::new();
    let mut process = world.start("trap 'echo no' TERM; echo $$; while :; do :; done");
    line(&mut process).await;
    process.terminate();
    assert_eq!(line(&mut process).await, "no");
    drop(process);
    world.is_empty().await;
    let mut process = world.start("echo ready; sleep 60");
    assert_eq!(line(&mut process).await, "ready");
    process.terminate();
    assert_eq!(finish(process).await.ended.signal, Some(15));
}

#[tokio::test]
async fn a_hundred_at_once_all_end_and_leave_nothing() {
    let world = World::new();
    let runs = (0..100).map(|number| {
        let process = world.start(&format!("sleep 60 & echo {number}"));
        finish(process)
    });
    for (number, finished) in join_all(runs).await.into_iter().enumerate() {
        assert_eq!(finished.output.trim(), number.to_string());
    }
    world.is_empty().await;
}

/// Each process of the chain starts the next in a session of its own and ends.
const CHAIN: &str =
    "f() { [ $1 = 0 ] || { setsid bash -c \"$(declare -f f); f $(($1 - 1))\" & } ; }; f 400; sleep 0.2";

#[tokio::test]
async fn a_chain_of_forks_does_not_get_away() {
    for namespaces in [true, false] {
        let kernel = Kernel { namespaces, ..Kernel::default() };
        let world = World::with(Settings { kernel, ..Settings::default() });
        assert_eq!(world.run(CHAIN).await.ended.code, Some(0));
        world.is_empty().await;
    }
}
