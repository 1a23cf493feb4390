//! The processes below this one.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, kill_process_group, wait};

use super::open_files::OpenFiles;

/// How long ending everything may take if only what belongs to another user is left.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// What the processes below this one use.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Use {
    pub(super) processes: u64,
    pub(super) memory_bytes: u64,
    /// Disk space of files that have no name any more.
    pub(super) unnamed_bytes: u64,
}

/// What they use, or none if that cannot be seen. It stops to count above `most` processes: counting must be faster than
/// forking.
///
/// Pages of files are not counted: the system takes them back when it needs them. Shared anonymous memory counts once, as
/// a whole: it is there even if no process has its pages in use. So do buffers of sockets, see [`OpenFiles`]. Tables of
/// pages count because they can be large where no page is.
pub(super) fn usage(most: u64) -> Option<Use> {
    // A supervisor that cannot look at itself sees nobody.
    fs::read_dir("/proc/self/task").ok()?;
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let mut sum = Use::default();
    let mut shared = BTreeMap::new();
    let mut files = OpenFiles::default();
    for_each_descendant(|pid| {
        sum.processes += 1;
        files.add(pid);
        let Pages { size, resident, shared: of_files } = pages(pid);
        let Ok(maps) = fs::read_to_string(format!("/proc/{}/maps", pid.as_raw_nonzero())) else {
            // What hides its memory may use all of it.
            sum.memory_bytes += size * page;
            return sum.processes <= most;
        };
        sum.memory_bytes += resident.saturating_sub(of_files) * page + page_table_bytes(pid);
        let UnnamedMappings { memory, files: mapped } = unnamed_mappings(&maps);
        for (inode, bytes) in memory {
            let largest: &mut u64 = shared.entry(inode).or_default();
            *largest = bytes.max(*largest);
        }
        mapped.into_iter().for_each(|(inode, bytes)| files.add_mapped(inode, bytes));
        sum.processes <= most
    });
    sum.memory_bytes += shared.values().sum::<u64>() + files.most_socket_bytes();
    sum.unnamed_bytes = files.unnamed_bytes();
    Some(sum)
}

/// What a process has mapped that has no name, by inode.
#[derive(Debug, Default, PartialEq)]
struct UnnamedMappings {
    /// Shared anonymous memory, and how much of it is mapped.
    memory: BTreeMap<u64, u64>,
    /// Files, and how far they reach at least.
    files: BTreeMap<u64, u64>,
}

fn unnamed_mappings(maps: &str) -> UnnamedMappings {
    let mut found = UnnamedMappings::default();
    for line in maps.lines().filter(|line| line.ends_with(" (deleted)")) {
        let fields: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
        let &[range, _, offset, _, inode] = fields.as_slice() else { continue };
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let bytes = range.split_once('-').and_then(|(start, end)| hex(end)?.checked_sub(hex(start)?));
        let (Some(bytes), Some(offset), Ok(inode)) = (bytes, hex(offset), inode.parse()) else { continue };
        if line.ends_with("/dev/zero (deleted)") {
            *found.memory.entry(inode).or_default() += bytes;
        } else {
            let end: &mut u64 = found.files.entry(inode).or_default();
            *end = offset.saturating_add(bytes).max(*end);
        }
    }
    found
}

/// The memory that a process takes for the tables of its pages.
fn page_table_bytes(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let kilobytes = kilobytes.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or_default().saturating_mul(1024)
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
    use super::{UnnamedMappings, unnamed_mappings};

    #[test]
    fn what_has_no_name_is_told_from_other_mappings() {
        let maps = "7f00-8f00 rw-s 00000000 00:01 1034 /dev/zero (deleted)\n\
                    9f00-a000 rw-s 00001000 00:01 1034 /dev/zero (deleted)\n\
                    b000-c000 r-xp 00000000 fe:00 77 /usr/bin/sleep\n\
                    d000-e000 rw-p 00003000 fe:00 99 /work/a file (deleted)\n\
                    d000-e000 rw-p 00001000 fe:00 99 /work/a file (deleted)\n";
        let expected = UnnamedMappings { memory: [(1034, 0x1100)].into(), files: [(99, 0x4000)].into() };
        assert_eq!(unnamed_mappings(maps), expected);
    }
}
