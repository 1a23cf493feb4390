//! The processes below this one.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

/// How long ending everything may take. Only what belongs to another user is left then.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What the processes below this one use.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Use {
    pub(super) processes: u64,
    pub(super) memory_bytes: u64,
}

/// What they use. It stops to count above `most` processes: counting must be faster than forking.
pub(super) fn usage(most: u64) -> Use {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut sum = Use::default();
    for_each_descendant(|pid| {
        sum.processes += 1;
        sum.memory_bytes += resident_pages(pid) * page;
        sum.processes <= most
    });
    sum
}

/// Sends them all a signal.
pub(super) fn signal(signal: Signal) {
    for_each_descendant(|pid| {
        // It may have ended in between.
        let _ = kill_process(pid, signal);
        true
    });
}

/// Calls `visit` for all processes below this one, as long as it wants more.
fn for_each_descendant(mut visit: impl FnMut(Pid) -> bool) {
    let mut found = children(getpid());
    while let Some(pid) = found.pop() {
        found.extend(children(pid));
        if !visit(pid) {
            return;
        }
    }
}

/// Kills and reaps them all. Returns how many there were.
pub(super) fn end_all(command: Pid) -> usize {
    // Without children there is nothing to look for, which is the usual case.
    if wait(WaitOptions::NOHANG).is_err() {
        return 0;
    }
    let there_were = count_alive();
    let started = Instant::now();
    let (_keep, pause) = std::sync::mpsc::channel::<()>();
    while started.elapsed() < PATIENCE {
        // The group at once: what forks as fast as it can must not get away.
        let _ = kill_process_group(command, Signal::KILL);
        signal(Signal::KILL);
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return there_were,
            }
        }
        let _ = pause.recv_timeout(PAUSE);
    }
    there_were
}

fn count_alive() -> usize {
    let mut alive = 0;
    for_each_descendant(|pid| {
        // What is dead and not reaped yet has no memory.
        alive += usize::from(resident_pages(pid) > 0);
        alive < 1000
    });
    alive
}

fn children(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero();
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().map(|thread| fs::read_to_string(thread.path().join("children")));
    let lists: String = lists.map(Result::unwrap_or_default).collect();
    lists.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

fn resident_pages(pid: Pid) -> u64 {
    let sizes = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    sizes.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default()
}
