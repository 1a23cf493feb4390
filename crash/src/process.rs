//! The server as a process that can be killed.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use petasos_testkit::{Client, ModelServer, within};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const KEY: &str = "pk_crash_suite";

pub(crate) struct Process {
    child: Child,
    url: String,
}

impl Process {
    /// Starts the server and waits until it says that it is ready.
    pub(crate) async fn start(binary: &Path, home: &Path, model: &ModelServer) -> Result<Self> {
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
            .kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", binary.display()))?;
        let stdout = child.stdout.take().context("no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        let first = within("the server to be ready", lines.next_line()).await?.context("it said nothing")?;
        let url = first.split_once(" is ready at ").context(first.clone())?.1.to_owned();
        // The rest of the banner must not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Process { child, url })
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, KEY)
    }

    /// SIGKILL: no handler runs, nothing is flushed.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }
}
