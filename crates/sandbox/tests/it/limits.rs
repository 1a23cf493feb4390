//! What a command may use up.

use petasos_sandbox::{Kernel, Limit, Limits, Settings};

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
async fn tables_of_pages_count_as_memory() {
    let limits = Limits { memory_bytes: 64 << 20, ..Limits::default() };
    // Pages that were only read take no memory, but their tables do.
    let touch = "import mmap, time\nsize = 64 << 30\nm = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)\nm.madvise(mmap.MADV_NOHUGEPAGE)\nfor i in range(0, size, 2 << 20): m[i]\ntime.sleep(60)";
    let finished = run_with(limits, &format!("python3 -c '{touch}'")).await;
    assert_eq!(finished.ended.over, Some(Limit::Memory), "{finished:?}");
}

#[tokio::test]
async fn files_that_were_removed_and_are_open_or_mapped_have_an_end() {
    let limits = Limits { unnamed_bytes: 10 << 20, ..Limits::default() };
    let open = "exec 9> file; rm file; head -c 5000000 /dev/urandom >&9; echo half; head -c 6000000 /dev/urandom >&9; sleep 60";
    let finished = run_with(limits, open).await;
    assert_eq!(finished.ended.over, Some(Limit::UnnamedFiles), "{finished:?}");
    assert_eq!(finished.output.trim(), "half");
    let mapped = "import mmap, os, time\nf = open(\"file\", \"wb+\")\nos.truncate(\"file\", 11 << 20)\nm = mmap.mmap(f.fileno(), 11 << 20)\nos.close(f.fileno())\nos.remove(\"file\")\ntime.sleep(60)";
    // Python keeps a copy of the descriptor.
    let mapped = mapped.replace("time.sleep", "os.closerange(3, 100)\ntime.sleep");
    let finished = run_with(limits, &format!("python3 -c '{mapped}'")).await;
    assert_eq!(finished.ended.over, Some(Limit::UnnamedFiles), "{finished:?}");
}

#[tokio::test]
async fn limits_and_priority_of_other_processes_cannot_be_changed() {
    let others = [
        "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (4, 4))",
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (4, 4))",
        "os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
        "os.sched_setparam(os.getppid(), os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "os.setpriority(os.PRIO_PGRP, 0, 19)",
    ];
    let own = [
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))",
        "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "os.sched_setaffinity(0, os.sched_getaffinity(0))",
        "os.setpriority(os.PRIO_PROCESS, 0, 15)",
    ];
    for namespaces in [true, false] {
        let kernel = Kernel { namespaces, ..Kernel::default() };
        let world = World::with(Settings { kernel, ..Settings::default() });
        let affinity = "os.sched_setaffinity(os.getppid(), [0])";
        let others = others.iter().copied().chain((!namespaces).then_some(affinity));
        for attempt in others {
            let finished = world.run(&format!("python3 -c 'import os, resource; {attempt}'; true")).await;
            assert!(finished.output.contains("PermissionError: [Errno 1]"), "{attempt}: {finished:?}");
        }
        let finished = world.run(&format!("python3 -c 'import os, resource; {}'", own.join("; "))).await;
        assert_eq!((finished.ended.code, finished.output.as_str()), (Some(0), ""), "{finished:?}");
    }
}

#[tokio::test]
async fn time_on_the_processor_has_an_end() {
    let finished = run_with(Limits { cpu_seconds: 1, ..Limits::default() }, "while :; do :; done").await;
    assert!(matches!(finished.ended.signal, Some(9 | 24)), "{finished:?}");
}
