//! Memory and disk space that belong to open files rather than to processes.
//!
//! Bytes that were sent to a socket and not read are in no process, and the kernel does not tell anybody else how many
//! there are. So every socket counts as if it were full, but for those that an ordinary program has. A file without a
//! name is in no directory and takes room on the disk until it is closed.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use rustix::process::Pid;

/// Sockets that do not count.
const FREE_SOCKETS: usize = 128;
/// What a socket can hold if the system does not say: Linux doubles the default of 208 KB.
const USUAL_SOCKET_BYTES: u64 = 2 * 212_992;
/// The size of the blocks in which the kernel counts.
const BLOCK: u64 = 512;

/// The sockets and the files without a name that some processes have open. Two processes may have the same one.
#[derive(Default)]
pub(super) struct OpenFiles {
    sockets: HashSet<(u64, u64)>,
    unnamed: BTreeMap<u64, u64>,
}

impl OpenFiles {
    /// Adds those of a process.
    pub(super) fn add(&mut self, pid: Pid) {
        let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else { return };
        // Not by the paths that these links show: one may be too long to be read.
        for file in entries.flatten().filter_map(|entry| fs::metadata(entry.path()).ok()) {
            if file.file_type().is_socket() {
                self.sockets.insert((file.dev(), file.ino()));
            } else if is_unnamed(&file) {
                self.unnamed.insert(file.ino(), file.blocks().saturating_mul(BLOCK));
            }
        }
    }

    /// Adds a file without a name that is mapped, of which so many bytes are seen.
    pub(super) fn add_mapped(&mut self, inode: u64, bytes: u64) {
        let known = self.unnamed.entry(inode).or_default();
        *known = bytes.max(*known);
    }

    /// The most memory that the sockets can hold.
    pub(super) fn most_socket_bytes(&self) -> u64 {
        let counted = self.sockets.len().saturating_sub(FREE_SOCKETS);
        if counted == 0 {
            return 0;
        }
        u64::try_from(counted).unwrap_or(u64::MAX).saturating_mul(most_bytes_of_a_socket())
    }

    /// The disk space of the files without a name.
    pub(super) fn unnamed_bytes(&self) -> u64 {
        self.unnamed.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

fn is_unnamed(file: &Metadata) -> bool {
    file.is_file() && file.nlink() == 0
}

fn most_bytes_of_a_socket() -> u64 {
    let most = fs::read_to_string("/proc/sys/net/core/wmem_max").ok();
    most.and_then(|text| text.trim().parse::<u64>().ok()).map_or(USUAL_SOCKET_BYTES, |bytes| 2 * bytes)
}
