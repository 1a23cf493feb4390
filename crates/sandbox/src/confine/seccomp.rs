//! Which system calls a command may make.
//!
//! Landlock controls files. What is refused here is the rest by which a command could reach beyond them: sockets,
//! mounts, namespaces, other processes' memory, limits and priority, kernel modules, memory that outlives a command or counts for none of
//! its processes, and calls that do any of these behind the filter's back.

use std::collections::BTreeMap;

use seccompiler::{
    Error, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::job::Confinement;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that no command needs.
const REFUSED: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_semget,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_shmget,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
    libc::SYS_vmsplice,
    QUOTACTL_FD,
    STATMOUNT,
    LISTMOUNT,
    OPEN_TREE_ATTR,
];

// Calls that are too new to have names here. Their numbers are the same on every architecture.
const QUOTACTL_FD: i64 = 443;
const STATMOUNT: i64 = 457;
const LISTMOUNT: i64 = 458;
const OPEN_TREE_ATTR: i64 = 467;

/// What `ioprio_set` calls a process.
const IOPRIO_WHO_PROCESS: u64 = 1;
/// What in a socket's type says how it talks.
const SOCKET_TYPE: u64 = 0xf;
/// The version of Landlock that controls truncating files.
const TRUNCATE_ABI: i32 = 3;

/// Calls that are said not to exist, so that programs fall back: to calls that the filter can see into, to files.
const UNKNOWN: &[i64] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
];

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

pub(super) fn apply(confinement: &Confinement, landlock_abi: i32) -> Result<(), Error> {
    let mut refused: Rules = REFUSED.iter().map(|&call| (call, Vec::new())).collect();
    refused.insert(libc::SYS_clone, namespaces()?);
    refused.insert(
        libc::SYS_ioctl,
        vec![argument(1, Is::Eq, libc::TIOCSTI)?, argument(1, Is::Eq, libc::TIOCLINUX)?],
    );
    refused.extend(changes_of_other_processes()?);
    if !confinement.namespaces.is_some_and(|namespaces| namespaces.processes) {
        // Threads of a program do this to one another, so it is refused only where it would reach the server.
        refused.insert(libc::SYS_sched_setaffinity, vec![argument(0, Is::Ne, 0)?]);
    }
    if landlock_abi < TRUNCATE_ABI {
        // By a path; what is open for writing may be truncated.
        refused.insert(libc::SYS_truncate, Vec::new());
    }
    if !confinement.unix_sockets {
        refused.insert(libc::SYS_socketpair, pairs_that_send_to_paths()?);
    }
    if let Some(rules) = sockets(confinement)? {
        refused.insert(libc::SYS_socket, rules);
    }
    let unknown: Rules = UNKNOWN.iter().map(|&call| (call, Vec::new())).collect();
    install(refused, libc::EPERM)?;
    install(unknown, libc::ENOSYS)
}

/// Which sockets are refused; an empty list means all.
fn sockets(confinement: &Confinement) -> Result<Option<Vec<SeccompRule>>, Error> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    Ok(match (confinement.network, confinement.unix_sockets) {
        (true, true) => None,
        (true, false) => Some(vec![argument(0, Is::Eq, unix)?]),
        (false, true) => Some(vec![argument(0, Is::Ne, unix)?]),
        (false, false) => Some(Vec::new()),
    })
}

/// Keeps a thread from Unix sockets that reach other programs.
pub(super) fn refuse_unix_sockets() -> Result<(), Error> {
    let unix = u64::from(libc::AF_UNIX.unsigned_abs());
    let sockets = (libc::SYS_socket, vec![argument(0, Is::Eq, unix)?]);
    install([sockets, (libc::SYS_socketpair, pairs_that_send_to_paths()?)].into(), libc::EPERM)
}

/// One of a pair of datagram sockets can send to any other's path. For Unix sockets raw ones are the same.
fn pairs_that_send_to_paths() -> Result<Vec<SeccompRule>, Error> {
    let types = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| u64::from(kind.unsigned_abs()));
    types.into_iter().map(|kind| argument(1, Is::MaskedEq(SOCKET_TYPE), kind)).collect()
}

/// Calls that change the limits or the priority of a process, except one's own: the supervisor and, where processes have
/// no namespace, the server have the same user.
fn changes_of_other_processes() -> Result<Rules, Error> {
    let of_another = || argument(0, Is::Ne, 0);
    // These name a user or a group of processes by their first argument, and a process by the second.
    let of_several = |only| Ok::<_, Error>(vec![argument(0, Is::Ne, only)?, argument(1, Is::Ne, 0)?]);
    let new_limit = SeccompCondition::new(2, Length::Qword, Is::Ne, 0)?;
    let another = SeccompCondition::new(0, Length::Dword, Is::Ne, 0)?;
    Ok([
        (libc::SYS_prlimit64, vec![SeccompRule::new(vec![another, new_limit])?]),
        (libc::SYS_sched_setattr, vec![of_another()?]),
        (libc::SYS_sched_setparam, vec![of_another()?]),
        (libc::SYS_sched_setscheduler, vec![of_another()?]),
        (libc::SYS_setpriority, of_several(u64::from(libc::PRIO_PROCESS))?),
        (libc::SYS_ioprio_set, of_several(IOPRIO_WHO_PROCESS)?),
    ]
    .into())
}

fn namespaces() -> Result<Vec<SeccompRule>, Error> {
    let flags = NAMESPACES.iter().map(|flag| u64::from(flag.unsigned_abs()));
    flags.map(|flag| argument(0, Is::MaskedEq(flag), flag)).collect()
}

fn argument(index: u8, comparison: Is, value: u64) -> Result<SeccompRule, Error> {
    let condition = SeccompCondition::new(index, Length::Dword, comparison, value)?;
    Ok(SeccompRule::new(vec![condition])?)
}

fn install(mut rules: Rules, errno: i32) -> Result<(), Error> {
    if cfg!(target_arch = "x86_64") {
        // The same calls under the numbers of the x32 interface.
        let x32: Rules = rules.iter().map(|(call, rules)| (call | 0x4000_0000, rules.clone())).collect();
        rules.extend(x32);
    }
    let architecture = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    seccompiler::apply_filter(&program)
}
