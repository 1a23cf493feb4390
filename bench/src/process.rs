//! The programs that are measured: the server and the stub model, each a process of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::api::{self, Api};
use crate::http::Connection;
use crate::machine::{self, Memory};

/// The key of every server that is measured.
pub(crate) const KEY: &str = "pk_benchmark";

/// A server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to its first answer on `/health`.
    pub(crate) started_in: Duration,
}

impl Server {
    /// Starts a server on a home and waits until it answers.
    pub(crate) async fn start(binary: &Path, home: &Path, stub: SocketAddr) -> Result<Self> {
        let mut command = Command::new(binary);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(home)
            .env("PETASOS_API_KEY", KEY)
            .env("OPENAI_API_KEY", "sk-bench")
            .env("OPENAI_BASE_URL", format!("http://{stub}/v1"))
            .env("PETASOS_LOG", "error")
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let started = Instant::now();
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let first = lines.next_line().await?.context("the server said nothing")?;
        let (_, url) = first.split_once(" is ready at ").with_context(|| first.clone())?;
        let address: SocketAddr = url.trim_start_matches("http://").trim_end_matches('/').parse()?;
        let health = b"GET /health HTTP/1.1\r\nhost: bench\r\n\r\n";
        let (status, _) = Connection::open(address).await?.exchange(health).await?;
        let started_in = started.elapsed();
        anyhow::ensure!(status == 200, "/health answered {status}");
        // The rest of the banner must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Server { child, address, started_in })
    }

    pub(crate) async fn api(&self) -> Result<Api> {
        api::Api::open(self.address).await
    }

    pub(crate) fn memory(&self) -> Result<Memory> {
        machine::memory(self.id()?)
    }

    /// Time on a processor so far.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        machine::processor_time(self.id()?)
    }

    fn id(&self) -> Result<u32> {
        self.child.id().context("the server ended")
    }

    /// Ends the server in good order.
    pub(crate) async fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(self.id()?.try_into()?), Signal::SIGTERM)?;
        self.child.wait().await?;
        Ok(())
    }
}

/// The stub model. It ends with this program, since it reads our end of a pipe.
pub(crate) struct Stub {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Stub {
    pub(crate) async fn start() -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("--stub").stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the stub model")?;
        let mut lines = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        let address = lines.next_line().await?.context("the stub said nothing")?.parse()?;
        Ok(Stub { child, address })
    }

    /// Time on a processor so far.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        machine::processor_time(self.child.id().context("the stub ended")?)
    }
}
