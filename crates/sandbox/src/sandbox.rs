//! The door: starts commands as the settings say.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};

use crate::backend;
use crate::error::{Error, Result};
use crate::group::{Group, Groups};
use crate::job::Job;
use crate::namespaces::{Namespaces, PROBE};
use crate::process::{self, Belongings, Process};
use crate::report::Report;
use crate::settings::{Backend, Fallback, Settings};
use crate::spare::Spare;
use crate::streams::Streams;
use crate::sudo::{self, Broker, Password, Sudo};

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
    /// Whether it may write to files.
    pub files: FileWrites,
}

/// Whether a command may write to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileWrites {
    /// Up to the size that the settings allow.
    Limited,
    /// Not a byte. It can still remove, rename and cut files.
    None,
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
    pub(crate) spare: Spare,
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
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Supervisor { program, arguments, spare: Spare::default() }
    }

    /// What a test binary is told by, to be a supervisor.
    pub const MARK_OF_TESTS: &str = "as-a-supervisor";

    /// This same test binary; it must have [`crate::supervisor_of_tests`] in its root.
    pub fn of_tests() -> Self {
        Self::this_program(&["sandbox_supervisor", Self::MARK_OF_TESTS, "--exact", "--nocapture"])
    }

    /// The shell script that stands in place of `sudo` where commands are confined.
    fn sudo_stand_in(&self) -> io::Result<String> {
        let quoted = |word: &str| format!("'{}'", word.replace('\'', r"'\''"));
        let program = quoted(&self.file()?.to_string_lossy());
        let words: Vec<String> = self.arguments.iter().map(|word| quoted(word)).collect();
        let [stdin, stdout, stderr] = sudo::STREAMS;
        Ok(format!(
            "#!/bin/sh\nexec {program} {} -- {} \"${{{}:-none}}\" \"$@\" {stdin}<&0 {stdout}>&1 {stderr}>&2 </dev/null \
             >/dev/null 2>/dev/null\n",
            words.join(" "),
            sudo::STAND_IN,
            sudo::SOCKET_VARIABLE,
        ))
    }

    /// Where the program is, as a command would have to name it.
    fn file(&self) -> io::Result<PathBuf> {
        self.program.canonicalize()
    }

    /// The best namespaces that can be made here, found out by making them.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    pub(crate) fn namespaces(&self) -> Option<Namespaces> {
        let works = |namespaces: &Namespaces| {
            let mut command = std::process::Command::new(&self.program);
            command
                .args(&self.arguments)
                .args(namespaces.arguments())
                .arg(PROBE)
                .env_clear()
                .current_dir("/");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        Namespaces::ALL.into_iter().find(works)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
    pub(crate) fn spawn(
        &self,
        control: OwnedFd,
        namespaces: Option<Namespaces>,
    ) -> io::Result<tokio::process::Child> {
        tokio::process::Command::new(&self.program)
            .args(&self.arguments)
            .args(namespaces.into_iter().flat_map(Namespaces::arguments))
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
    groups: Option<&'static Groups>,
    found: OnceLock<Found>,
}

/// What the system can do, found out by trying it.
#[derive(Debug)]
struct Found {
    report: Report,
    namespaces: Option<Namespaces>,
}

impl Shared {
    /// Tries it with the first call, which other calls wait for.
    fn found(&self) -> &Found {
        self.found.get_or_init(|| {
            let wanted = self.settings.kernel.namespaces && self.settings.backend == Backend::Landlock;
            let namespaces = if wanted { self.supervisor.namespaces() } else { None };
            let report = Report::of(&self.settings, namespaces, self.groups.is_some());
            Found { report, namespaces }
        })
    }
}

impl Sandbox {
    /// Starts nothing yet: with the first command, or the first [`Sandbox::report`], it looks at what the system can do.
    pub fn new(settings: Settings, supervisor: Supervisor) -> Self {
        // A control group can only be divided while this process has started no other in it, such as those of hooks.
        let groups = Groups::find();
        Sandbox { shared: Arc::new(Shared { settings, supervisor, groups, found: OnceLock::new() }) }
    }

    /// How commands are run.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// What the system can do of it. The first call starts processes to find out, and blocks for
    /// some milliseconds.
    pub fn report(&self) -> &Report {
        &self.shared.found().report
    }

    /// Starts a command. Must be called within a Tokio runtime.
    pub fn start(&self, command: Command) -> Result<Process> {
        let (mut job, streams) = self.job(command)?;
        let group = self.group(&mut job)?;
        Ok(process::start(&self.shared.supervisor, &job, streams, Belongings { other: None, group })?)
    }

    /// Starts a command that may call `sudo`, which it finds as [`Self::sudo_stand_in`]. What `sudo` starts is not
    /// confined; the command is. Must be called within a Tokio runtime.
    pub fn start_with_sudo(&self, command: Command, sudo: Sudo) -> Result<Process> {
        let program = self.sudo_program()?.to_owned();
        let supervisor = self.shared.supervisor.clone();
        let file = supervisor.file()?;
        let workspace = command.workspace.clone();
        let outside = self.sudo_job(&workspace);
        let (mut job, streams) = self.job(command)?;
        if let Some(confinement) = &mut job.confinement {
            confinement.execute.push(file);
        }
        let group = self.group(&mut job)?;
        let broker = Broker { sudo, program, supervisor, workspace, job: outside };
        let (socket, listening) = broker.start()?;
        let started =
            process::start(&self.shared.supervisor, &job, streams, Belongings { other: Some(socket), group });
        if started.is_err() {
            listening.abort();
        }
        Ok(started?)
    }

    /// The shell script that commands must find as `sudo`.
    pub fn sudo_stand_in(&self) -> Result<String> {
        Ok(self.shared.supervisor.sudo_stand_in()?)
    }

    /// Fails unless `sudo` takes this password. Nothing is started with it.
    pub async fn check_sudo_password(&self, password: &Password, workspace: &Path) -> Result<()> {
        let job = self.sudo_job(workspace);
        sudo::check(self.sudo_program()?, &self.shared.supervisor, &job, password).await
    }

    fn sudo_program(&self) -> Result<&Path> {
        let Settings { sudo, backend, .. } = &self.shared.settings;
        let problem = |why: &str| Error::Sudo(why.to_owned());
        if matches!(backend, Backend::Docker { .. } | Backend::Bubblewrap) {
            return Err(problem("sandbox.sudo works with the sandbox.backend landlock only"));
        }
        let program = sudo.as_deref().ok_or_else(|| problem("sudo is off (sandbox.sudo)"))?;
        if program.is_file() { Ok(program) } else { Err(problem("sudo is not installed")) }
    }

    /// What runs `sudo` itself: outside, in a clean environment.
    fn sudo_job(&self, workspace: &Path) -> Job {
        let command = Command {
            arguments: Vec::new(),
            env: BTreeMap::new(),
            workspace: workspace.to_owned(),
            directory: PathBuf::from("/"),
            streams: Streams::Merged,
            confine: Confine::Not,
            files: FileWrites::Limited,
        };
        backend::job(&Backend::Unconfined, &self.shared.settings, None, command)
    }

    fn job(&self, command: Command) -> Result<(Job, Streams)> {
        let longest = command.arguments.iter().map(String::len).max().unwrap_or_default();
        if longest > MAX_ARGUMENT {
            return Err(Error::TooLong { bytes: longest, most: MAX_ARGUMENT });
        }
        let backend = self.backend(command.confine)?;
        let streams = command.streams;
        let namespaces = self.shared.found().namespaces;
        Ok((backend::job(backend, &self.shared.settings, namespaces, command), streams))
    }

    /// Makes a control group for a job, if there can be one.
    fn group(&self, job: &mut Job) -> Result<Option<Group>> {
        let Some(groups) = self.shared.groups else { return Ok(None) };
        let group = groups.make(&job.limits)?;
        job.group = Some(group.path().to_owned());
        Ok(Some(group))
    }

    fn backend(&self, confine: Confine) -> Result<&Backend> {
        let settings = &self.shared.settings;
        match (&self.report().missing, confine, settings.fallback) {
            (_, Confine::Not, _) | (Some(_), _, Fallback::Unconfined) => Ok(&Backend::Unconfined),
            (None, _, _) => Ok(&settings.backend),
            (Some(missing), _, Fallback::Refuse) => Err(Error::CannotConfine { missing: missing.clone() }),
        }
    }
}
