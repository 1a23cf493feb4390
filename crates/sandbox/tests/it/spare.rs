//! A supervisor that waits for the next command.

use petasos_sandbox::Process;
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Finished, World, finish, within};

/// The processes that this one has started and that have not ended.
fn children() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let numbers: Vec<i32> = lists.flat_map(|list| numbers(&list)).collect();
    numbers.into_iter().filter_map(Pid::from_raw).collect()
}

fn numbers(list: &str) -> Vec<i32> {
    list.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// The only process that is there, once it is another than `last`.
async fn the_only_one_but(last: Option<Pid>) -> Pid {
    within("a supervisor that waits", async {
        loop {
            match children()[..] {
                [pid] if Some(pid) != last => return pid,
                _ => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

#[tokio::test]
async fn the_next_command_takes_it_and_sees_nothing_of_the_last() {
    let world = World::new();
    let first = world.start("export LEFT=1; umask 077; ulimit -n 64; sleep 60 & read -r line");
    let of_first = the_only_one_but(None).await;
    let first = ended(first).await;
    assert_eq!(first.ended.left_running, 1, "{first:?}");
    let waits = the_only_one_but(Some(of_first)).await;
    let next = world.start("echo ${LEFT:-none} $(umask) $(ulimit -n); read -r line");
    assert_eq!(children(), [waits], "no other one was started");
    assert_eq!(ended(next).await.output.trim(), "none 0022 4096");
}

#[tokio::test]
async fn the_next_command_runs_even_if_it_was_killed() {
    let world = World::new();
    for _ in 0..3 {
        let process = world.start("echo ran; read -r line");
        let supervisor = the_only_one_but(None).await;
        assert_eq!(ended(process).await.output.trim(), "ran");
        let waits = the_only_one_but(Some(supervisor)).await;
        kill_process(waits, Signal::KILL).unwrap();
        let status = format!("/proc/{}/stat", waits.as_raw_nonzero());
        within("its end", async {
            while !std::fs::read_to_string(&status).unwrap().contains(") Z ") {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Ends the input of a process and waits for its end.
async fn ended(mut process: Process) -> Finished {
    drop(process.stdin.take());
    finish(process).await
}
