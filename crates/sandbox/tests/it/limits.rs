//! What a command may use up.

use petasos_sandbox::{Limit, Limits, Settings};

use crate::world::{Finished, World};

async fn run_with(limits: Limits, script: &str) -> Finished {
    World::with(Settings { limits, ..Settings::default() }).run(script).await
}

#[tokio::test]
async fn a_fork_bomb_is_ended() {
    let limits = Limits { processes: 40, ..Limits::default() };
    let finished = run_with(limits, "for i in {1..300}; do sleep 60 & done; sleep 60").await;
    assert_eq!(finished.ended.over, Some(Limit::Processes), "{finished:?}");
    // Not one without an end: if this test fails, the machine must not.
    let bomb = "f() { if [ $1 = 0 ]; then sleep 60; else f $(($1-1)) | f $(($1-1)) & fi; }; f 8; sleep 60";
    assert_eq!(run_with(limits, bomb).await.ended.over, Some(Limit::Processes));
}

#[tokio::test]
async fn memory_and_files_have_an_end() {
    let limits = Limits { memory_bytes: 200 << 20, file_bytes: 1 << 20, ..Limits::default() };
    let finished = run_with(limits, "python3 -c 'x = bytearray(300 << 20)'").await;
    assert!(finished.output.contains("MemoryError"), "{finished:?}");
    let many =
        "for i in 1 2 3 4; do python3 -c 'import time; x = b\"x\" * (90 << 20); time.sleep(60)' & done; wait";
    assert_eq!(run_with(limits, many).await.ended.over, Some(Limit::Memory));
    // Memory that no process has in its address space would count for none.
    let finished = run_with(limits, "python3 -c 'import os; os.memfd_create(\"x\")'").await;
    assert!(finished.output.contains("Function not implemented"), "{finished:?}");
    let finished = run_with(limits, "head -c 2000000 /dev/zero > big; wc -c < big").await;
    assert!(finished.output.contains("1048576"), "{finished:?}");
}

#[tokio::test]
async fn time_on_the_processor_has_an_end() {
    let finished = run_with(Limits { cpu_seconds: 1, ..Limits::default() }, "while :; do :; done").await;
    assert!(matches!(finished.ended.signal, Some(9 | 24)), "{finished:?}");
}
