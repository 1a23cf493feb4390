//! How much memory the sockets of a command can hold.
//!
//! Bytes that were sent and not read belong to no process, and the kernel does not say to anybody else how many there
//! are. So every socket counts as if it were full, but for those that an ordinary program has.

use std::collections::HashSet;
use std::fs;

use rustix::process::Pid;

/// Sockets that do not count.
const FREE: usize = 128;
/// What a socket can hold if the system does not say: Linux doubles the default of 208 KB.
const USUAL_BYTES: u64 = 2 * 212_992;

/// The sockets of some processes.
#[derive(Default)]
pub(super) struct Sockets {
    names: HashSet<String>,
}

impl Sockets {
    /// Adds those of a process. Two processes may have the same one.
    pub(super) fn add(&mut self, pid: Pid) {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else { return };
        let links = entries.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let names = links.filter_map(|link| link.into_os_string().into_string().ok());
        self.names.extend(names.filter(|name| name.starts_with("socket:")));
    }

    /// The most that they can hold.
    pub(super) fn most_bytes(&self) -> u64 {
        let counted = self.names.len().saturating_sub(FREE);
        if counted == 0 {
            return 0;
        }
        u64::try_from(counted).unwrap_or(u64::MAX).saturating_mul(bytes_of_one())
    }
}

fn bytes_of_one() -> u64 {
    let most = fs::read_to_string("/proc/sys/net/core/wmem_max").ok();
    most.and_then(|text| text.trim().parse::<u64>().ok()).map_or(USUAL_BYTES, |bytes| 2 * bytes)
}
