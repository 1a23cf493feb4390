//! What the server tells a supervisor, and what it hears back.
//!
//! The supervisor's standard input is a socket. On it come a message with the command's three streams, one more
//! descriptor for some jobs, and the length of the job, then the job as JSON; after that each byte is an order. The end of the socket is an order too: end
//! everything. The supervisor answers with one line of JSON, [`Answer`], and is gone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::namespaces::Namespaces;
use crate::settings::Limits;
use crate::sudo::Password;

/// The order to ask the command's processes to end.
pub(crate) const TERMINATE: u8 = b'T';

/// One command, as a supervisor carries it out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) arguments: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) directory: PathBuf,
    /// Whether the streams are a terminal, to be the command's own.
    pub(crate) terminal: bool,
    pub(crate) confinement: Option<Confinement>,
    pub(crate) limits: Limits,
    /// The control group that it runs in, if it has one.
    pub(crate) group: Option<PathBuf>,
    /// What to run when the command did not end by itself, for what is not in its process tree.
    pub(crate) clean_up: Option<Vec<String>>,
    /// Whether a command that is confined by another program is kept from Unix sockets.
    pub(crate) refuse_unix_sockets: bool,
    /// The password of a job that is `sudo`. With such a job comes the directory that it runs in, as a descriptor; with
    /// any other may come the socket through which the command can call `sudo`.
    pub(crate) sudo_password: Option<Password>,
}

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Read and execute.
    pub(crate) execute: Vec<PathBuf>,
    /// Read the names of what is in them.
    pub(crate) list: Vec<PathBuf>,
    /// Read.
    pub(crate) read: Vec<PathBuf>,
    /// Read and write, but neither make nor remove.
    pub(crate) devices: Vec<PathBuf>,
    /// Everything.
    pub(crate) write: Vec<PathBuf>,
    /// Links that are part of what it sees, and where they lead.
    pub(crate) links: BTreeMap<PathBuf, PathBuf>,
    pub(crate) network: bool,
    pub(crate) unix_sockets: bool,
    /// The namespaces that it gets; none if the system has none for it.
    pub(crate) namespaces: Option<Namespaces>,
    /// The newest version of Landlock that is used.
    pub(crate) landlock_abi: i32,
}

/// What a supervisor has to say.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    NotStarted(String),
    Ended(Ended),
}

/// How a command ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What it returned.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The limit for which it was ended.
    pub over: Option<Limit>,
    /// How many processes it left running. They were ended.
    pub left_running: usize,
    /// Why it was not started, or what became of its supervisor.
    pub problem: Option<String>,
}

/// A limit that the supervisor watches over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Of memory.
    Memory,
    /// Of processes.
    Processes,
    /// Of disk space that is taken by files without a name.
    UnnamedFiles,
}
