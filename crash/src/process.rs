//! The server as a process that can be killed.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use petasos_testkit::{Client, ModelServer, within};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::shim::Shim;

pub(crate) const KEY: &str = "pk_crash_suite";

/// What of the standard error is kept.
const MAX_ERRORS: u64 = 64 * 1024;

pub(crate) struct Process {
    child: Child,
    url: String,
    errors: JoinHandle<String>,
}

/// How a start ended.
pub(crate) enum Start {
    Ready(Process),
    /// The server said this and ended.
    Refused(String),
    /// The server was killed before it was ready.
    Killed,
}

impl Start {
    /// The server, which must be ready.
    fn ready(self) -> Result<Process> {
        match self {
            Start::Ready(process) => Ok(process),
            Start::Refused(message) => bail!("the server refuses to start: {message}"),
            Start::Killed => bail!("the server was killed before it was ready"),
        }
    }
}

impl Process {
    /// Starts the server, which must work.
    pub(crate) async fn start(binary: &Path, home: &Path, model: &ModelServer) -> Result<Self> {
        Self::try_start(binary, home, model).await?.ready()
    }

    /// Starts the server under the rules of a shim, which must work.
    pub(crate) async fn start_with(
        binary: &Path,
        home: &Path,
        model: &ModelServer,
        shim: &Shim,
    ) -> Result<Self> {
        Self::launch(binary, home, model, Some(shim)).await?.ready()
    }

    /// Starts the server and waits until it says that it is ready, or ends.
    pub(crate) async fn try_start(binary: &Path, home: &Path, model: &ModelServer) -> Result<Start> {
        Self::launch(binary, home, model, None).await
    }

    /// Starts the server under the rules of a shim, if there is one.
    pub(crate) async fn launch(
        binary: &Path,
        home: &Path,
        model: &ModelServer,
        shim: Option<&Shim>,
    ) -> Result<Start> {
        #[expect(clippy::disallowed_methods, reason = "the suite drives the binary from outside")]
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(home)
            .env("PETASOS_API_KEY", KEY)
            .env("OPENAI_API_KEY", "sk-crash")
            .env("OPENAI_BASE_URL", model.openai_base_url())
            .env("PETASOS_LOG", "error")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .envs(shim.map(Shim::environment).into_iter().flatten())
            .kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let stderr = child.stderr.take().context("no standard error")?;
        let errors = tokio::spawn(async move {
            let mut kept = String::new();
            let mut stderr = stderr;
            let _ = (&mut stderr).take(MAX_ERRORS).read_to_string(&mut kept).await;
            // The rest must not fill the pipe.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            kept
        });
        let mut lines = BufReader::new(stdout).lines();
        let Some(first) = within("the server to be ready", lines.next_line()).await? else {
            let status = within("the server to end", child.wait()).await?;
            let message = errors.await?;
            if status.signal() == Some(Signal::SIGKILL as i32) {
                return Ok(Start::Killed);
            }
            if status.code() != Some(1) {
                bail!("the server ended with {status}: {message}");
            }
            return Ok(Start::Refused(message.trim_end().to_owned()));
        };
        let url = first.split_once(" is ready at ").context(first.clone())?.1.to_owned();
        // The rest of the banner must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Start::Ready(Process { child, url, errors }))
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, KEY)
    }

    /// Where it listens, as `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }

    /// Waits until something else has killed the server.
    pub(crate) async fn until_killed(mut self) -> Result<()> {
        let status = within("the server to be killed", self.child.wait()).await?;
        if status.signal() != Some(Signal::SIGKILL as i32) {
            bail!("the server ended with {status}: {}", self.errors.await?);
        }
        Ok(())
    }

    /// SIGTERM: the server ends as it does every day. Returns what it wrote to its standard error.
    pub(crate) async fn stop(mut self) -> Result<String> {
        kill(Pid::from_raw(self.id().cast_signed()), Signal::SIGTERM)?;
        let status = within("the server to stop", self.child.wait()).await?;
        let errors = self.errors.await?;
        if !status.success() {
            bail!("the server ended with {status}: {errors}");
        }
        Ok(errors)
    }
}
