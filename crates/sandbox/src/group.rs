//! A control group (cgroup v2) for each command, where the system lets us divide our own: systemd does with
//! `Delegate=yes`. In it the kernel counts all memory that a command uses, buffers of sockets and pipes included.

use std::fs;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::settings::Limits;

/// Where control groups are.
const MOUNTED: &str = "/sys/fs/cgroup";
/// The group into which this program goes, because one that has groups below it may hold no processes itself.
const SERVER: &str = "server";
/// How the names of groups of commands begin.
const COMMAND: &str = "command-";

/// Makes groups for commands.
#[derive(Debug)]
pub(crate) struct Groups {
    parent: PathBuf,
    made: AtomicU64,
}

impl Groups {
    /// Finds out whether this program may divide the group that it is in, by doing it, once.
    pub(crate) fn find() -> Option<&'static Groups> {
        static FOUND: OnceLock<Option<Groups>> = OnceLock::new();
        FOUND.get_or_init(Groups::divide_own).as_ref()
    }

    fn divide_own() -> Option<Groups> {
        let own = own_group(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
        divide(&own).ok()?;
        remove_old(&own);
        Some(Groups { parent: own, made: AtomicU64::default() })
    }

    /// Makes a group with the limits of a command.
    pub(crate) fn make(&self, limits: &Limits) -> io::Result<Group> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let group = Group { path: self.parent.join(format!("{COMMAND}{}-{number}", std::process::id())) };
        fs::create_dir(&group.path)?;
        fs::write(group.path.join("memory.max"), limits.memory_bytes.to_string())?;
        // Not every system has swap. What is there would be memory besides.
        let _ = fs::write(group.path.join("memory.swap.max"), "0");
        Ok(group)
    }
}

/// The group of one command. Dropping it ends whatever is in it.
#[derive(Debug)]
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the kernel has ended a process in it because there was no memory left.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        Memory::of(&self.path).is_ok_and(|memory| memory.ran_out())
    }
}

/// What happened to the memory of a group. It can be read where the group cannot be seen any more.
#[derive(Debug)]
pub(crate) struct Memory(fs::File);

impl Memory {
    pub(crate) fn of(group: &Path) -> io::Result<Memory> {
        fs::File::open(group.join("memory.events")).map(Memory)
    }

    /// Whether the kernel has ended a process because there was none left.
    pub(crate) fn ran_out(&self) -> bool {
        let (mut file, mut events) = (&self.0, String::new());
        let read = file.rewind().and_then(|()| file.read_to_string(&mut events));
        let ended = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        read.is_ok() && ended.is_some_and(|number| number.trim() != "0")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nothing is in it any more, unless its supervisor was killed.
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        if let Err(error) = fs::remove_dir(&self.path) {
            tracing::debug!(%error, group = %self.path.display(), "a control group stays until the next start");
        }
    }
}

/// Moves the calling process into a group.
pub(crate) fn enter(group: &Path) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
}

/// The directory of the group that `/proc/self/cgroup` names.
fn own_group(text: &str) -> Option<PathBuf> {
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(MOUNTED).join(path))
}

/// Lets a group have others below it whose memory is counted.
fn divide(own: &Path) -> io::Result<()> {
    let controllers = fs::read_to_string(own.join("cgroup.controllers"))?;
    if !controllers.split_whitespace().any(|controller| controller == "memory") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let server = own.join(SERVER);
    match fs::create_dir(&server) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let divided = enter(&server).and_then(|()| fs::write(own.join("cgroup.subtree_control"), "+memory"));
    if divided.is_err() {
        // Others are in our group too, so it is not ours to divide.
        let _ = enter(own);
        let _ = fs::remove_dir(&server);
    }
    divided
}

/// Removes groups that a server has left which was killed. What was in them ended with it.
fn remove_old(own: &Path) {
    let Ok(entries) = fs::read_dir(own) else { return };
    let of_commands =
        entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(COMMAND));
    for entry in of_commands {
        let _ = fs::remove_dir(entry.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_this_process_is_found_among_older_ones() {
        let mixed = "4:memory:/a\n0::/system.slice/petasos.service\n";
        assert_eq!(own_group(mixed), Some("/sys/fs/cgroup/system.slice/petasos.service".into()));
        assert_eq!(own_group("0::/\n"), Some("/sys/fs/cgroup/".into()));
        assert_eq!(own_group("4:memory:/a\n"), None);
    }
}
