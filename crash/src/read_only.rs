//! A disk that cannot be written: a clear refusal at the start; and under way, errors for writes while reads go on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use petasos_testkit::ModelServer;
use petasos_testkit::client::message;
use tokio::process::Command;

use crate::mounts::Mount;
use crate::process::{Process, Start};
use crate::{check, model, recording};

pub(crate) async fn run(binary: &Path) -> Result<()> {
    let model = ModelServer::start().await;
    model.respond(model::reply);
    let home = tempfile::tempdir()?;
    let server = Process::start(binary, home.path(), &model).await?;
    let sessions = recording::sessions(&server.client(), 2).await;
    let logs = recording::record(&server.client(), &sessions).await;
    server.stop().await?;

    match Mount::read_only(home.path()) {
        Ok(mounted) => match Process::try_start(binary, &mounted.path(), &model).await? {
            Start::Refused(message) => {
                assert!(message.contains("Read-only file system"), "the reason is missing: {message}");
                println!("read-only disk at the start: 1 passed, 0 failed ({message})");
            }
            Start::Ready(_) => panic!("the server says that it is ready on a read-only disk"),
            Start::Killed => panic!("something else killed the server"),
        },
        Err(reason) => println!("read-only disk at the start: SKIPPED, {reason}"),
    }

    let mut server = Process::start(binary, home.path(), &model).await.context("after a refused start")?;
    let client = server.client();
    let files = ["petasos.db", "petasos.db-wal"].map(|file| home.path().join(file));
    match Immutable::make(&files).await? {
        Err(reason) => println!("read-only disk under way: SKIPPED, {reason}"),
        Ok(immutable) => {
            let refused = client.event(&sessions[0], message("do plain-9")).await;
            if refused.status == 200 {
                println!("read-only disk under way: SKIPPED, this file system lets writes through");
            } else {
                refused.expect_error(500, "server_error");
                for session in &sessions {
                    assert_eq!(client.events(session).await, logs[session], "{session} is read as before");
                }
                drop(immutable);
                for session in &sessions {
                    check::takes_another_turn(&client, session).await;
                }
                println!("read-only disk under way: 1 passed, 0 failed");
            }
        }
    }
    server.kill().await
}

/// Files that even their owner cannot write, not even if they are open already. Dropping this makes them as before.
struct Immutable(Vec<PathBuf>);

impl Immutable {
    async fn make(files: &[PathBuf]) -> Result<Result<Immutable, String>> {
        let made = chattr("+i", files).output().await;
        Ok(match made {
            Ok(output) if output.status.success() => Ok(Immutable(files.to_vec())),
            Ok(output) => {
                drop(Immutable(files.to_vec()));
                Err(String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; "))
            }
            Err(error) => Err(format!("chattr: {error}")),
        })
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let _ = chattr("-i", &self.0).into_std().output();
    }
}

fn chattr(flag: &str, files: &[PathBuf]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the suite changes what the server stands on")]
    let mut command = Command::new("chattr");
    command.arg(flag).args(files);
    command
}
