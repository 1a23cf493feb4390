//! Starts shell commands for tools: in the workspace, with the session's secrets, in the sandbox.

use std::collections::BTreeMap;
use std::path::PathBuf;

use petasos_sandbox::{
    Command, Confine, FileWrites, Password, Process, Sandbox, Streams, Sudo, TerminalSize,
};
use secrecy::{ExposeSecret, SecretString};

use crate::commands::SudoCalls;
use crate::redact::Redactor;
use crate::tool::Invocation;
use crate::workspace::{OURS, Workspace};

const TERMINAL: TerminalSize = TerminalSize { rows: 50, columns: 160 };
/// A shell command to start.
pub(crate) struct Shell<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) workspace: &'a Workspace,
    pub(crate) secrets: &'a BTreeMap<String, SecretString>,
    pub(crate) sudo_password: Option<&'a SecretString>,
    /// The calls of `sudo` that the password is for.
    pub(crate) sudo_calls: SudoCalls,
    pub(crate) pty: bool,
    pub(crate) directory: Option<&'a str>,
    /// What the workspace has room for.
    pub(crate) files: FileWrites,
}

impl<'a> Shell<'a> {
    /// What a call's command gets.
    pub(crate) fn new(sandbox: &'a Sandbox, workspace: &'a Workspace, invocation: &'a Invocation) -> Self {
        let secrets = &invocation.secrets;
        let sudo_password = invocation.sudo_password.as_ref();
        let sudo_calls = SudoCalls::default();
        let files = FileWrites::Limited;
        Shell { sandbox, workspace, secrets, sudo_password, sudo_calls, pty: false, directory: None, files }
    }

    /// Starts a shell command. Its standard input is open. With a password nothing starts unless `sudo` takes it.
    pub(crate) async fn start(&self, command: &str) -> Result<Process, String> {
        let streams = if self.pty { Streams::Terminal(TERMINAL) } else { Streams::Merged };
        let Some(password) = self.sudo_password else {
            return self.run_with(shell(command), streams);
        };
        let password = Password::new(password.expose_secret());
        let checked = self.sandbox.check_sudo_password(&password, self.workspace.path()).await;
        checked.map_err(|error| format!("Nothing of the command was run: {error}."))?;
        let directory = self.put_sudo_in_place()?;
        let script = format!("PATH='{}':\"$PATH\"; {command}", directory.replace('\'', r"'\''"));
        let mut calls = self.sudo_calls.clone();
        let sudo = Sudo { password, allow: Box::new(move |arguments| calls.take(arguments)) };
        let started = self.sandbox.start_with_sudo(self.command(shell(&script), streams), sudo);
        started.map_err(|error| format!("{error}."))
    }

    /// Puts the script that calls `sudo` outside where the command finds it, and returns that directory.
    fn put_sudo_in_place(&self) -> Result<String, String> {
        let script = self.sandbox.sudo_stand_in().map_err(|error| format!("{error}."))?;
        let file = format!("{OURS}/bin/sudo");
        self.workspace.write_file(file.as_ref(), script.as_bytes())?;
        let executable =
            cap_std::fs::Permissions::from_std(std::os::unix::fs::PermissionsExt::from_mode(0o755));
        let changed = self.workspace.directory().set_permissions(&file, executable);
        changed.map_err(|error| format!("{file} cannot be made executable: {error}."))?;
        Ok(self.workspace.path().join(OURS).join("bin").display().to_string())
    }

    /// Starts a program.
    pub(crate) fn run_with(&self, arguments: Vec<String>, streams: Streams) -> Result<Process, String> {
        self.sandbox.start(self.command(arguments, streams)).map_err(|error| format!("{error}."))
    }

    fn command(&self, arguments: Vec<String>, streams: Streams) -> Command {
        Command {
            arguments,
            env: self.env(),
            workspace: self.workspace.path().to_owned(),
            directory: self.directory(),
            streams,
            confine: Confine::AsSet,
            files: self.files,
        }
    }

    /// Where it runs.
    pub(crate) fn directory(&self) -> PathBuf {
        let workspace = self.workspace.path();
        match self.directory {
            Some(directory) => workspace.join(directory.strip_prefix("~/").unwrap_or(directory)),
            None => workspace.to_owned(),
        }
    }

    fn env(&self) -> BTreeMap<String, String> {
        let temporary = self.workspace.temporary().display().to_string();
        let terminal = if self.pty { "xterm-256color" } else { "dumb" };
        let own = [("TMPDIR", temporary.as_str()), ("TERM", terminal)];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let secrets =
            self.secrets.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
        own.chain(secrets).collect()
    }

    /// Takes what must not be seen out of the command's output.
    pub(crate) fn redactor(&self) -> Redactor {
        Redactor::new(self.secrets.values().chain(self.sudo_password))
    }
}

/// The words that run a script.
fn shell(script: &str) -> Vec<String> {
    let shell = if std::path::Path::new("/bin/bash").exists() { "bash" } else { "sh" };
    [shell, "-c", script].map(str::to_owned).into()
}
