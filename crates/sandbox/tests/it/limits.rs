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
    // Shared memory is there even if no process has it in use.
    let shared = "import mmap, time\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, 300 << 20, 1 << 20):\n  m[i:i + (1 << 20)] = b\"x\" * (1 << 20)\n  m.madvise(mmap.MADV_DONTNEED)\ntime.sleep(60)";
    assert_eq!(run_with(limits, &format!("python3 -c '{shared}'")).await.ended.over, Some(Limit::Memory));
    // Memory that no process has in its address space would count for none.
    let finished = run_with(limits, "python3 -c 'import os; os.memfd_create(\"x\")'").await;
    assert!(finished.output.contains("Function not implemented"), "{finished:?}");
    let finished = run_with(limits, "head -c 2000000 /dev/zero > big; wc -c < big").await;
    assert!(finished.output.contains("1048576"), "{finished:?}");
}

#[tokio::test]
async fn bytes_that_wait_in_sockets_count_as_memory() {
    let limits = Limits { memory_bytes: 200 << 20, ..Limits::default() };
    let pairs = |number: usize| {
        format!(
            "import socket, sys, time\nkept = []\nfor i in range({number}):\n  a, b = socket.socketpair()\n  a.setblocking(False)\n  try:\n    while True: a.send(b\"x\" * 65536)\n  except BlockingIOError: pass\n  kept += [a, b]\nprint(\"full\", flush=True)\ntime.sleep(60 if {number} > 99 else 0)"
        )
    };
    let ordinary = run_with(limits, &format!("python3 -c '{}'", pairs(20))).await;
    assert_eq!((ordinary.ended.code, ordinary.ended.over), (Some(0), None), "{ordinary:?}");
    let greedy = run_with(limits, &format!("python3 -c '{}'", pairs(1500))).await;
    assert_eq!(greedy.ended.over, Some(Limit::Memory), "{greedy:?}");
    // Pages that a pipe has borrowed would count for nobody.
    let lend = "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nc.vmsplice(1, None, 0, 0)\nprint(ctypes.get_errno())";
    let lent = run_with(limits, &format!("python3 -c '{lend}'")).await;
    assert_eq!(lent.output.trim(), "1", "{lent:?}");
}

#[tokio::test]
async fn time_on_the_processor_has_an_end() {
    let finished = run_with(Limits { cpu_seconds: 1, ..Limits::default() }, "while :; do :; done").await;
    assert!(matches!(finished.ended.signal, Some(9 | 24)), "{finished:?}");
}
