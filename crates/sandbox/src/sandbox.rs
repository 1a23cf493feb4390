//! The door: starts commands as the settings say.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use crate::backend;
use crate::error::{Error, Result};
use crate::process::{self, Process};
use crate::report::Report;
use crate::settings::{Backend, Fallback, Settings};
use crate::streams::Streams;

/// The longest argument that Linux takes.
const MAX_ARGUMENT: usize = 128 * 1024 - 1;

/// A command to start.
#[derive(Debug, Clone)]
pub struct Command {
    /// The program and its arguments.
    pub arguments: Vec<String>,
    /// Variables of its environment, besides those of the settings. It inherits none.
    pub env: BTreeMap<String, String>,
    /// What it may write to, and where programs keep their own files.
    pub workspace: PathBuf,
    /// Where it starts.
    pub directory: PathBuf,
    /// What it reads from and writes to.
    pub streams: Streams,
    /// Whether it is confined.
    pub confine: Confine,
}

/// Whether a command is confined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confine {
    /// As the settings say.
    AsSet,
    /// Not at all. It is still supervised and limited.
    Not,
}

/// How this program is started as a supervisor: it must call [`crate::supervisor::main`].
#[derive(Debug, Clone)]
pub struct Supervisor {
    program: PathBuf,
    arguments: Vec<String>,
}

impl Supervisor {
    /// This same program, started with these arguments.
    pub fn this_program(arguments: &[&str]) -> Self {
        // The link leads to this program even after another was put in its place.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        Supervisor { program, arguments: arguments.iter().map(|&argument| argument.to_owned()).collect() }
    }

    /// What a test binary is told by, to be a supervisor.
    pub const MARK_OF_TESTS: &str = "as-a-supervisor";

    /// This same test binary; it must have [`crate::supervisor_of_tests`] in its root.
    pub fn of_tests() -> Self {
        Self::this_program(&["sandbox_supervisor", Self::MARK_OF_TESTS, "--exact", "--nocapture"])
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    pub(crate) fn spawn(&self, control: OwnedFd) -> io::Result<tokio::process::Child> {
        tokio::process::Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(control))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }
}

/// Starts commands. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    supervisor: Supervisor,
    report: Report,
}

impl Sandbox {
    /// Looks at what the system can do, once.
    pub fn new(settings: Settings, supervisor: Supervisor) -> Self {
        let report = Report::of(&settings);
        Sandbox { shared: Arc::new(Shared { settings, supervisor, report }) }
    }

    /// How commands are run.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// What the system can do of it.
    pub fn report(&self) -> &Report {
        &self.shared.report
    }

    /// Starts a command. Must be called within a Tokio runtime.
    pub fn start(&self, command: Command) -> Result<Process> {
        let longest = command.arguments.iter().map(String::len).max().unwrap_or_default();
        if longest > MAX_ARGUMENT {
            return Err(Error::TooLong { bytes: longest, most: MAX_ARGUMENT });
        }
        let backend = self.backend(command.confine)?;
        let streams = command.streams;
        let job = backend::job(backend, &self.shared.settings, command);
        Ok(process::start(&self.shared.supervisor, &job, streams)?)
    }

    fn backend(&self, confine: Confine) -> Result<&Backend> {
        let Shared { settings, report, .. } = self.shared.as_ref();
        match (&report.missing, confine, settings.fallback) {
            (_, Confine::Not, _) | (Some(_), _, Fallback::Unconfined) => Ok(&Backend::Unconfined),
            (None, _, _) => Ok(&settings.backend),
            (Some(missing), _, Fallback::Refuse) => Err(Error::CannotConfine { missing: missing.clone() }),
        }
    }
}
