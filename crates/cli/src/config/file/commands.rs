//! Commands of agents: how they are run, and which ask a person.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;

use serde::Deserialize;

/// How commands of agents are run.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sandbox {
    /// What confines them.
    pub(crate) backend: SandboxBackend,
    /// The image of the backend docker.
    pub(crate) image: Option<String>,
    /// What happens where they cannot be confined.
    pub(crate) fallback: SandboxFallback,
    /// Whom they can talk to.
    pub(crate) network: SandboxNetwork,
    /// Whether they may make Unix sockets.
    pub(crate) unix_sockets: bool,
    /// What they may read and execute besides the system's programs.
    pub(crate) read: Vec<PathBuf>,
    /// What they may write besides their workspace.
    pub(crate) write: Vec<PathBuf>,
    /// Variables of their environment.
    pub(crate) env: BTreeMap<String, String>,
    /// Whether sessions of the tenant default may call sudo, with a password that a person gives.
    pub(crate) sudo: bool,
    /// Memory of one command.
    pub(crate) memory_bytes: Option<NonZero<u64>>,
    /// Processes of one command.
    pub(crate) processes: Option<NonZero<u64>>,
    /// The size of a file that a command writes.
    pub(crate) file_bytes: Option<NonZero<u64>>,
    /// Processor time of each process.
    pub(crate) cpu_seconds: Option<NonZero<u64>>,
}

/// What confines commands.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxBackend {
    /// Landlock and seccomp of the kernel.
    #[default]
    Landlock,
    /// The program bwrap.
    Bubblewrap,
    /// A container for each command.
    Docker,
    /// Nothing.
    None,
}

/// What happens where commands cannot be confined.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxFallback {
    /// They do not run.
    #[default]
    Refuse,
    /// They run all the same.
    Unconfined,
}

/// Whom commands can talk to.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxNetwork {
    /// Nobody.
    #[default]
    None,
    /// Everybody.
    All,
}

/// Which commands ask a person.
#[derive(Deserialize, Default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Approvals {
    /// Whether dangerous commands ask.
    pub(crate) mode: ApprovalMode,
    /// Commands that never run.
    pub(crate) deny: Vec<String>,
    /// What happens to a call that a person would have to allow, in runs of routines and in subagents.
    pub(crate) unattended: Unattended,
    /// Whether web_extract asks before it reads a page.
    pub(crate) web: WebApproval,
}

/// Whether `web_extract` asks before it reads a page.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum WebApproval {
    /// It does not.
    #[default]
    Allow,
    /// It does, unless an agent's policy says otherwise.
    Ask,
}

/// What happens to a call that a person would have to allow, where nobody is.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unattended {
    /// It is refused.
    #[default]
    Deny,
    /// It runs.
    Allow,
}

/// Whether dangerous commands ask.
#[derive(Deserialize, Debug, Default, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum ApprovalMode {
    /// They do.
    #[default]
    Manual,
    /// They do not.
    Off,
}
