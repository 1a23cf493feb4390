//! The processes below this one.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use super::sockets::Sockets;

/// How long ending everything may take if only what belongs to another user is left.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What the processes below this one use.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Use {
    pub(super) processes: u64,
    pub(super) memory_bytes: u64,
}

/// What they use. It stops to count above `most` processes: counting must be faster than forking.
///
/// Pages of files are not counted: the system takes them back when it needs them. Shared anonymous memory counts once, as
/// a whole: it is there even if no process has its pages in use. So do buffers of sockets, see [`Sockets`].
pub(super) fn usage(most: u64) -> Use {
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut sum = Use::default();
    let mut shared = BTreeMap::new();
    let mut sockets = Sockets::default();
    for_each_descendant(|pid| {
        sum.processes += 1;
        sockets.add(pid);
        let Pages { size, resident, shared: of_files } = pages(pid);
        let Ok(maps) = fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero())) else {
            // What hides its memory may use all of it.
            sum.memory_bytes += size * page;
            return sum.processes <= most;
        };
        sum.memory_bytes += resident.saturating_sub(of_files) * page;
        for (inode, bytes) in shared_memory(&maps) {
            let largest: &mut u64 = shared.entry(inode.to_owned()).or_default();
            *largest = bytes.max(*largest);
        }
        sum.processes <= most
    });
    sum.memory_bytes += shared.values().sum::<u64>() + sockets.most_bytes();
    sum
}

/// The shared anonymous memory of a process by its inodes, and how much of each is mapped.
fn shared_memory(maps: &str) -> BTreeMap<&str, u64> {
    let mut found = BTreeMap::new();
    for line in maps.lines().filter(|line| line.ends_with("/dev/zero (deleted)")) {
        let mut fields = line.split_ascii_whitespace();
        let range = fields.next().and_then(|range| range.split_once('-'));
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let bytes = range.and_then(|(start, end)| address(end)?.checked_sub(address(start)?));
        let (Some(bytes), Some(inode)) = (bytes, fields.nth(3)) else { continue };
        *found.entry(inode).or_default() += bytes;
    }
    found
}

/// Sends them all a signal. Returns whether any could be sent one.
pub(super) fn signal(signal: Signal) -> bool {
    let mut reached_any = false;
    for_each_descendant(|pid| {
        // It may have ended in between, or belong to another user.
        reached_any |= kill_process(pid, signal).is_ok();
        true
    });
    reached_any
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
    loop {
        // The group at once: what forks as fast as it can must not get away.
        let _ = kill_process_group(command, Signal::KILL);
        let reached_any = signal(Signal::KILL);
        if !reached_any && started.elapsed() > PATIENCE {
            return there_were;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return there_were,
            }
        }
        let _ = pause.recv_timeout(PAUSE);
    }
}

fn count_alive() -> usize {
    let mut alive = 0;
    for_each_descendant(|pid| {
        // What is dead and not reaped yet has no memory.
        alive += usize::from(pages(pid).resident > 0);
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

/// The pages of a process.
struct Pages {
    /// All that it has addresses for.
    size: u64,
    /// Those in memory.
    resident: u64,
    /// Those in memory that are of files or shared.
    shared: u64,
}

fn pages(pid: Pid) -> Pages {
    let sizes = fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_nonzero())).unwrap_or_default();
    let mut sizes = sizes.split(' ').map(|pages| pages.parse().unwrap_or_default());
    let mut next = || sizes.next().unwrap_or_default();
    Pages { size: next(), resident: next(), shared: next() }
}

#[cfg(test)]
mod tests {
    use super::shared_memory;

    #[test]
    fn shared_memory_is_told_from_other_mappings() {
        let maps = "7f00-8f00 rw-s 00000000 00:01 1034 /dev/zero (deleted)\n\
                    9f00-a000 rw-s 00001000 00:01 1034 /dev/zero (deleted)\n\
                    b000-c000 r-xp 00000000 fe:00 77 /usr/bin/sleep\n";
        assert_eq!(shared_memory(maps), [("1034", 0x1100)].into());
    }
}
