//! Servers that are programs: what they read, write and complain about.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use petasos_sandbox::{Command, Confine, FileWrites, Handle, Sandbox, Streams};
use secrecy::ExposeSecret;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::definition::Program;
use super::streams::{Input, Output};

/// How much of a program's complaints is kept.
const COMPLAINTS: usize = 2048;
/// How long a program has to end after its input did.
const GRACE: Duration = Duration::from_secs(5);

/// A program that runs. Dropping it ends it and all that it has started.
pub(super) struct Running {
    pub(super) stdin: Option<Input>,
    pub(super) stdout: Option<Output>,
    /// The end of what it has written to standard error.
    pub(super) complaints: Complaints,
    handle: Handle,
}

impl Running {
    /// Lets it end by itself, now that nobody writes to it any more, and ends it if it does not.
    pub(super) async fn end(mut self) {
        drop(tokio::time::timeout(GRACE, self.handle.wait()).await);
    }

    /// Why it could not be started or what it said, as the end of a sentence.
    pub(super) async fn last_words(mut self) -> String {
        let ended = tokio::time::timeout(GRACE, self.handle.wait()).await.unwrap_or_default();
        let problem = ended.problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        format!("{problem}{}", self.complaints.sentence())
    }
}

/// Starts a program of the operator's configuration. It is not confined: the operator trusts it.
pub(super) fn start(program: &Program, sandbox: &Sandbox) -> Result<Running, petasos_sandbox::Error> {
    let env = program.env.iter().map(|(name, value)| (name.clone(), value.expose_secret().to_owned()));
    let process = sandbox.start(Command {
        arguments: std::iter::once(&program.command).chain(&program.args).cloned().collect(),
        env: env.collect(),
        workspace: program.directory.clone(),
        directory: program.directory.clone(),
        streams: Streams::Separate,
        confine: Confine::Not,
        files: FileWrites::Limited,
    })?;
    let (stdin, stdout, stderr, handle) = process.into_parts();
    let complaints = Complaints::default();
    if let Some(stderr) = stderr {
        tokio::spawn(complaints.clone().gather(stderr));
    }
    Ok(Running { stdin: stdin.map(Input), stdout: Some(Output(stdout)), complaints, handle })
}

/// The end of what a program has written to standard error.
#[derive(Clone, Default)]
pub(super) struct Complaints {
    kept: Arc<Mutex<Vec<u8>>>,
}

impl Complaints {
    async fn gather(self, mut from: impl AsyncRead + Unpin) {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..length]);
            let excess = kept.len().saturating_sub(COMPLAINTS);
            kept.drain(..excess);
        }
    }

    /// What was said, as the end of a sentence; nothing if nothing was.
    pub(super) fn sentence(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&kept).trim() {
            "" => String::new(),
            text => format!("; it wrote: {text}"),
        }
    }
}
