//! Pipes and terminals.

use petasos_sandbox::{Process, Streams, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::world::{World, finish, line, within};

#[tokio::test]
async fn a_command_reads_what_is_written_to_it() {
    let world = World::new();
    let mut process = world.start("read line; echo got $line; cat");
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(b"one\ntwo\n").await.unwrap();
    drop(stdin);
    let finished = finish(process).await;
    assert_eq!(finished.output, "got one\ntwo\n");
}

#[tokio::test]
async fn errors_can_be_a_stream_of_their_own() {
    let world = World::new();
    let mut command = world.command("echo out; echo err >&2");
    command.streams = Streams::Separate;
    let mut process = world.sandbox.start(command).unwrap();
    let mut errors = String::new();
    within("errors", process.stderr.take().unwrap().read_to_string(&mut errors)).await.unwrap();
    assert_eq!((finish(process).await.output.as_str(), errors.as_str()), ("out\n", "err\n"));
}

#[tokio::test]
async fn a_terminal_is_one() {
    let world = World::new();
    let mut command =
        world.command("tty; stty size; stty -echo; trap 'echo stopped; exit 4' INT; echo ready; cat");
    command.streams = Streams::Terminal(TerminalSize { rows: 40, columns: 120 });
    let mut process = world.sandbox.start(command).unwrap();
    let said = said_until(&mut process, "ready").await;
    assert!(said.contains("/dev/pts/") && said.contains("40 120"), "{said}");
    // `cat` says it again, so it runs: a shell that has yet to start it would keep the interrupt for later.
    process.stdin.as_mut().unwrap().write_all(b"hello\n").await.unwrap();
    said_until(&mut process, "hello").await;
    process.stdin.as_mut().unwrap().write_all(b"\x03").await.unwrap();
    let finished = finish(process).await;
    assert!(finished.output.contains("stopped"), "{finished:?}");
    assert_eq!(finished.ended.code, Some(4));
}

/// The lines of a process up to the one that is awaited.
async fn said_until(process: &mut Process, awaited: &str) -> String {
    let mut said = String::new();
    while !said.contains(awaited) {
        said += &line(process).await;
        said += "\n";
    }
    said
}
