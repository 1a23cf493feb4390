//! A workspace, and commands run in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use petasos_sandbox::{Command, Confine, Ended, FileWrites, Process, Sandbox, Settings, Streams, Supervisor};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;

/// Nothing that a test waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

pub(crate) struct World {
    pub(crate) directory: TempDir,
    pub(crate) sandbox: Sandbox,
}

/// How a command ended, and what it said.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) output: String,
    pub(crate) ended: Ended,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        World { directory, sandbox: Sandbox::new(settings, Supervisor::of_tests()) }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    pub(crate) fn command(&self, script: &str) -> Command {
        Command {
            arguments: vec!["bash".to_owned(), "-c".to_owned(), script.to_owned()],
            env: Default::default(),
            workspace: self.workspace(),
            directory: self.workspace(),
            streams: Streams::Merged,
            confine: Confine::AsSet,
            files: FileWrites::Limited,
        }
    }

    pub(crate) fn start(&self, script: &str) -> Process {
        self.sandbox.start(self.command(script)).unwrap()
    }

    /// Waits until nothing runs that was started in this world. Processes have other numbers inside, so what tells them
    /// is their environment, in which the workspace is.
    pub(crate) async fn is_empty(&self) {
        let home = format!("HOME={}", self.workspace().display());
        let is_ours = |process: std::fs::DirEntry| {
            let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        };
        within("the end of all processes", async {
            while std::fs::read_dir("/proc").unwrap().flatten().any(is_ours) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    pub(crate) async fn run(&self, script: &str) -> Finished {
        finish(self.start(script)).await
    }
}

/// Reads all output of a process and waits for its end.
pub(crate) async fn finish(mut process: Process) -> Finished {
    let mut output = Vec::new();
    within("the end of a command", async {
        process.stdout.read_to_end(&mut output).await.unwrap();
        let ended = process.wait().await;
        Finished { output: String::from_utf8_lossy(&output).into_owned(), ended }
    })
    .await
}

/// The next line that a process writes.
pub(crate) async fn line(process: &mut Process) -> String {
    let mut line = Vec::new();
    // Byte by byte: what follows the line is for the next reader.
    while line.last() != Some(&b'\n') {
        line.push(within("a line", process.stdout.read_u8()).await.unwrap());
    }
    String::from_utf8(line).unwrap().trim_end().to_owned()
}

/// Waits until a process is gone, or only waits to be reaped.
pub(crate) async fn gone(pid: &str) {
    let stat = format!("/proc/{pid}/stat");
    within(&format!("the end of process {pid}"), async {
        while Path::new(&stat).exists() && !is_dead(&stat) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn is_dead(stat: &str) -> bool {
    std::fs::read_to_string(stat).is_ok_and(|stat| stat.contains(") Z"))
}
