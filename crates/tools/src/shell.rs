//! Starts shell commands for tools: in the workspace, with the session's secrets, in the sandbox.

use std::collections::BTreeMap;
use std::path::PathBuf;

use petasos_sandbox::{Command, Confine, Process, Sandbox, Streams, TerminalSize};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncWriteExt;

use crate::redact::Redactor;
use crate::tool::Invocation;
use crate::workspace::Workspace;

const TERMINAL: TerminalSize = TerminalSize { rows: 50, columns: 160 };
/// With a password, `sudo` must take it from standard input, and ask for it each time: what it does not take, the
/// command would read.
const SUDO: &str = "sudo() { command sudo -k -S -p '' \"$@\"; }; export -f sudo 2>/dev/null; ";

/// A shell command to start.
pub(crate) struct Shell<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) workspace: &'a Workspace,
    pub(crate) secrets: &'a BTreeMap<String, SecretString>,
    pub(crate) sudo_password: Option<&'a SecretString>,
    /// How many times it asks for the password.
    pub(crate) sudo_calls: usize,
    pub(crate) pty: bool,
    pub(crate) directory: Option<&'a str>,
}

impl<'a> Shell<'a> {
    /// What a call's command gets.
    pub(crate) fn new(sandbox: &'a Sandbox, workspace: &'a Workspace, invocation: &'a Invocation) -> Self {
        let secrets = &invocation.secrets;
        let sudo_password = invocation.sudo_password.as_ref();
        Shell { sandbox, workspace, secrets, sudo_password, sudo_calls: 0, pty: false, directory: None }
    }

    /// Starts a shell command. Its standard input is open.
    pub(crate) async fn start(&self, command: &str) -> Result<Process, String> {
        let script = match self.sudo_password {
            Some(_) => format!("{SUDO}{command}"),
            None => command.to_owned(),
        };
        let shell = if std::path::Path::new("/bin/bash").exists() { "bash" } else { "sh" };
        let streams = if self.pty { Streams::Terminal(TERMINAL) } else { Streams::Merged };
        let mut process = self.run_with(vec![shell.to_owned(), "-c".to_owned(), script], streams)?;
        if let (Some(password), Some(stdin)) = (self.sudo_password, &mut process.stdin) {
            let lines = format!("{}\n", password.expose_secret()).repeat(self.sudo_calls);
            stdin
                .write_all(lines.as_bytes())
                .await
                .map_err(|error| format!("The command was gone: {error}."))?;
        }
        Ok(process)
    }

    /// Starts a program.
    pub(crate) fn run_with(&self, arguments: Vec<String>, streams: Streams) -> Result<Process, String> {
        let command = Command {
            arguments,
            env: self.env(),
            workspace: self.workspace.path().to_owned(),
            directory: self.directory(),
            streams,
            // `sudo` cannot work where nobody can gain privileges. A person has seen the command and given their
            // password for it, so it runs outside.
            confine: if self.sudo_password.is_some() { Confine::Not } else { Confine::AsSet },
        };
        self.sandbox.start(command).map_err(|error| format!("{error}."))
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
