//! Namespaces of a command: its own view of the files, and its own processes.
//!
//! A supervisor is told by its arguments which namespaces to make. A process cannot move itself into a new process
//! namespace: only what it starts from then on is in it. So with [`NEW_PROCESSES`] the supervisor starts itself once
//! more and waits; that second one is the first process of the namespace, and when it ends, in whatever way, the kernel
//! ends all others in it.

use std::io;

use serde::{Deserialize, Serialize};

/// The argument for a new user namespace, which lets a process that is no root make the others.
pub(crate) const NEW_USER: &str = "in-a-user-namespace";
/// The argument for a new process namespace.
pub(crate) const NEW_PROCESSES: &str = "in-a-process-namespace";
/// The argument of the supervisor that is the first process of its namespace.
pub(crate) const FIRST_PROCESS: &str = "as-the-first-process";
/// The argument to find out whether all that works, and nothing else.
pub(crate) const PROBE: &str = "only-to-try";

/// Which namespaces commands have besides one of mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Namespaces {
    /// One of users.
    pub(crate) user: bool,
    /// One of processes.
    pub(crate) processes: bool,
}

impl Namespaces {
    /// What may work, the best first.
    pub(crate) const ALL: [Namespaces; 4] = [
        Namespaces { user: false, processes: true },
        Namespaces { user: true, processes: true },
        Namespaces { user: false, processes: false },
        Namespaces { user: true, processes: false },
    ];

    /// The supervisor's arguments for them.
    pub(crate) fn arguments(self) -> Vec<&'static str> {
        let user = self.user.then_some(NEW_USER);
        user.into_iter().chain(self.processes.then_some(NEW_PROCESSES)).collect()
    }
}

/// Moves this process, which must have one thread, into a user namespace where it is who it was, and where it and what
/// it starts may mount.
#[cfg(target_os = "linux")]
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    use nix::sched::{CloneFlags, unshare};
    use rustix::thread::{
        CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
    };
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // Without this nobody but root may say which groups there are.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    // It is lost when another program is started, unless it is said to be kept.
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(())
}

/// From here on what this thread starts is in a new process namespace.
#[cfg(target_os = "linux")]
pub(crate) fn enter_process_namespace() -> io::Result<()> {
    Ok(nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWPID)?)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn enter_process_namespace() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
