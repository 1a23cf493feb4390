//! How commands are run.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// How commands are run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What confines them.
    pub backend: Backend,
    /// What happens where that is not to be had.
    pub fallback: Fallback,
    /// Whom they can talk to.
    pub network: Network,
    /// Whether they may make Unix sockets. Through those of other programs (a container daemon, a session bus) a
    /// command could get out of the sandbox.
    pub unix_sockets: bool,
    /// What they may read and execute besides the system's own programs.
    pub read: Vec<PathBuf>,
    /// What they may write besides their workspace.
    pub write: Vec<PathBuf>,
    /// What they never see: our own data, wherever it lies.
    pub hidden: Vec<PathBuf>,
    /// Variables of their environment, besides those that every command has.
    pub env: BTreeMap<String, String>,
    /// The program `sudo`, if commands may ask for it. Unset means that they may not.
    pub sudo: Option<PathBuf>,
    /// What they may use up.
    pub limits: Limits,
    /// What of the kernel is used.
    pub kernel: Kernel,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            backend: Backend::default(),
            fallback: Fallback::Refuse,
            network: Network::None,
            unix_sockets: false,
            read: Vec::new(),
            write: Vec::new(),
            hidden: Vec::new(),
            env: BTreeMap::new(),
            sudo: None,
            limits: Limits::default(),
            kernel: Kernel::default(),
        }
    }
}

/// What of the kernel is used, if it is there. Tests lower it to see what an older one would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel {
    /// The newest version of Landlock.
    pub landlock_abi: i32,
    /// Whether namespaces are made.
    pub namespaces: bool,
}

impl Default for Kernel {
    fn default() -> Self {
        Kernel { landlock_abi: i32::MAX, namespaces: true }
    }
}

/// What confines a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Backend {
    /// The kernel itself: Landlock and seccomp.
    #[default]
    Landlock,
    /// The program `bwrap`.
    Bubblewrap,
    /// A container for each command.
    Docker {
        /// What it is made from.
        image: String,
    },
    /// Nothing.
    Unconfined,
}

/// What happens where commands cannot be confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fallback {
    /// They are refused.
    #[default]
    Refuse,
    /// They run all the same.
    Unconfined,
}

/// Whom commands can talk to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Nobody.
    None,
    /// Everybody.
    All,
}

/// What a command may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Memory of all of its processes together.
    pub memory_bytes: u64,
    /// Processes at once.
    pub processes: u64,
    /// The size of a file that it writes.
    pub file_bytes: u64,
    /// Disk space of files that it has open and removed.
    pub unnamed_bytes: u64,
    /// Time on a processor, for each of its processes.
    pub cpu_seconds: u64,
}

impl Limits {
    /// What a program of the operator's own may use up: what it needs for as long as it runs, but not the machine.
    pub const OF_OPERATOR: Limits = Limits {
        memory_bytes: 16 << 30,
        processes: 1024,
        file_bytes: u64::MAX,
        unnamed_bytes: u64::MAX,
        cpu_seconds: u64::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_bytes: 4 * 1024 * 1024 * 1024,
            processes: 256,
            file_bytes: 1024 * 1024 * 1024,
            unnamed_bytes: 10_000_000_000,
            cpu_seconds: 3600,
        }
    }
}
