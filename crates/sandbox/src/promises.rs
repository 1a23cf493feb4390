//! What holds for commands here, promise by promise: by what the settings ask for and what was found to work.

use serde::Serialize;

use crate::namespaces::Namespaces;
use crate::settings::{Backend, Network, Settings};

/// Something that commands cannot do, and whether that is so here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Promise {
    /// A sentence.
    pub promise: &'static str,
    /// Whether it holds.
    pub kept: bool,
    /// By what, if it does.
    pub by: Option<&'static str>,
}

const READ_HOME: &str = "commands cannot read the server's home";
const SEE_HOME: &str = "commands cannot see names, sizes and times of files in the server's home";
const SETTINGS: &str = "commands cannot read the server's environment file and other settings below /etc";
const WRITE: &str = "commands cannot change files outside the workspace";
const METADATA: &str =
    "commands cannot change permissions, owners, times and attributes of files outside the workspace";
const SIGNAL: &str = "commands cannot signal the server";
const SEE_PROCESSES: &str = "commands cannot see other processes";
const READ_PROCESSES: &str = "commands cannot read or change the memory of other processes";
const NETWORK: &str = "commands cannot reach the network";
const SOCKETS: &str = "commands cannot reach other programs' sockets";
const TERMINALS: &str = "commands cannot read or write other terminals";
const PRIVILEGES: &str = "commands cannot gain privileges";
const KERNEL: &str = "commands cannot mount, make namespaces or change the kernel";
const SURVIVE: &str = "nothing that a command starts outlives it";
const MEMORY: &str = "commands end when their processes together use more memory than allowed";
const PROCESSES: &str = "commands end when they start more processes than allowed";

/// The versions of Landlock that control these.
const TRUNCATE_ABI: i32 = 3;
const SIGNAL_ABI: i32 = 6;

/// What the supervisor promises whatever confines a command.
fn limits(survive: &'static str) -> [Promise; 3] {
    [kept(SURVIVE, survive), kept(MEMORY, "supervisor"), kept(PROCESSES, "supervisor")]
}

/// The promises of Landlock, seccomp and namespaces together.
pub(crate) fn of_kernel(
    settings: &Settings,
    namespaces: Option<Namespaces>,
    landlock_abi: i32,
) -> Vec<Promise> {
    let files = namespaces.map(|_| "namespace");
    let processes = namespaces.filter(|namespaces| namespaces.processes).map(|_| "namespace");
    let truncate = if landlock_abi >= TRUNCATE_ABI { "landlock" } else { "seccomp" };
    let signal = (landlock_abi >= SIGNAL_ABI).then_some("landlock");
    let mut promises = vec![
        kept(READ_HOME, files.unwrap_or("landlock")),
        perhaps(SEE_HOME, files),
        kept(SETTINGS, files.unwrap_or("landlock")),
        kept(WRITE, files.unwrap_or(truncate)),
        perhaps(METADATA, files),
        perhaps(SIGNAL, processes.or(signal)),
        perhaps(SEE_PROCESSES, processes),
        kept(READ_PROCESSES, "seccomp"),
        perhaps(NETWORK, (settings.network == Network::None).then_some("seccomp")),
        perhaps(SOCKETS, (!settings.unix_sockets).then_some("seccomp")),
        kept(TERMINALS, files.unwrap_or("landlock")),
        kept(PRIVILEGES, "no_new_privs"),
        kept(KERNEL, "seccomp"),
    ];
    promises.extend(limits(processes.unwrap_or("supervisor")));
    promises
}

/// The promises of a backend that is a program of its own, or of none.
pub(crate) fn of_program(settings: &Settings) -> Vec<Promise> {
    let program = match &settings.backend {
        Backend::Bubblewrap => Some("bubblewrap"),
        Backend::Docker { .. } => Some("docker"),
        Backend::Landlock | Backend::Unconfined => None,
    };
    let closed = settings.network == Network::None;
    // Sockets without a file belong to a network namespace.
    let sockets = match program {
        Some("bubblewrap") if !closed && !settings.unix_sockets => Some("seccomp"),
        _ => program.filter(|_| closed),
    };
    let mut promises = vec![perhaps(NETWORK, program.filter(|_| closed)), perhaps(SOCKETS, sockets)];
    for promise in [
        READ_HOME,
        SEE_HOME,
        SETTINGS,
        WRITE,
        METADATA,
        SIGNAL,
        SEE_PROCESSES,
        READ_PROCESSES,
        TERMINALS,
        PRIVILEGES,
        KERNEL,
    ] {
        promises.push(perhaps(promise, program));
    }
    promises.extend(limits("supervisor"));
    promises
}

/// Where commands have control groups of their own, these keep the limit of memory.
pub(crate) fn keep_by_groups(promises: &mut [Promise]) {
    for promise in promises.iter_mut().filter(|promise| promise.promise == MEMORY) {
        *promise = kept(MEMORY, "cgroup");
    }
}

/// All promises, where commands do not run at all.
pub(crate) fn of_refusal(settings: &Settings) -> Vec<Promise> {
    let all = of_kernel(settings, None, 0);
    all.into_iter().map(|promise| kept(promise.promise, "refusal")).collect()
}

fn kept(promise: &'static str, by: &'static str) -> Promise {
    perhaps(promise, Some(by))
}

fn perhaps(promise: &'static str, by: Option<&'static str>) -> Promise {
    Promise { promise, kept: by.is_some(), by }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(promises: &[Promise], promise: &str) -> Option<&'static str> {
        promises.iter().find(|found| found.promise == promise).unwrap().by
    }

    #[test]
    fn each_wall_is_named_and_none_is_made_up() {
        let settings = Settings::default();
        let all = Some(Namespaces { user: true, processes: true });
        assert!(of_kernel(&settings, all, 1).iter().all(|promise| promise.kept));
        let bare = of_kernel(&settings, None, 7);
        assert_eq!((by(&bare, SIGNAL), by(&bare, METADATA)), (Some("landlock"), None));
        let old = of_kernel(&settings, None, 2);
        assert_eq!((by(&old, SIGNAL), by(&old, WRITE)), (None, Some("seccomp")));
        let open = Settings { network: Network::All, unix_sockets: true, ..Settings::default() };
        let open = of_kernel(&open, all, 7);
        assert_eq!((by(&open, NETWORK), by(&open, SOCKETS)), (None, None));
        let none = of_program(&Settings { backend: Backend::Unconfined, ..Settings::default() });
        assert_eq!(none.iter().filter(|promise| promise.kept).count(), 3);
    }
}
