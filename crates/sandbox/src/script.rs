//! Short programs of the operator's own: each is asked something once, answers, and ends.
//!
//! They are trusted, run often and must cost little more than the program itself, so they have no supervisor and no
//! confinement. A script is started in a process group of its own, without a copy of this process. When its time is
//! up, the whole group is killed. What a script leaves running when it ends by itself is its own business, even if that
//! still holds the streams open.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

/// A short program to run.
#[derive(Debug, Clone)]
pub struct Script<'a> {
    /// The program and its arguments. A name without a slash is looked up in the `PATH` of its environment.
    pub arguments: &'a [String],
    /// All of its environment.
    pub env: &'a BTreeMap<String, String>,
    /// Where it starts.
    pub directory: &'a Path,
    /// What it can read from standard input. It need not.
    pub input: &'a [u8],
    /// The most bytes of each of its outputs that are kept.
    pub most: usize,
}

/// What a script said, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// What it returned.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// Whether it wrote more than that.
    pub cut: bool,
    /// What it wrote to standard error, as far as it is kept.
    pub stderr: Vec<u8>,
}

impl Script<'_> {
    /// Runs it until it ends. Dropping the future kills it and everything in its process group.
    pub async fn run(&self) -> io::Result<Said> {
        let mut group = self.start()?;
        let (stdin, stdout, stderr) = group.streams()?;
        let mut stdout = Gathered::new(stdout, self.most);
        let mut stderr = Gathered::new(stderr, self.most);
        let status = {
            let talking = async {
                tokio::join!(feed(stdin, self.input), stdout.gather(), stderr.gather());
                std::future::pending::<()>().await;
            };
            tokio::select! {
                status = group.child.wait() => status?,
                () = talking => return Err(io::Error::other("its streams ended in a way that cannot be")),
            }
        };
        group.ended = true;
        stdout.rest();
        stderr.rest();
        Ok(Said {
            code: status.code(),
            signal: status.signal(),
            cut: stdout.cut,
            stdout: stdout.kept,
            stderr: stderr.kept,
        })
    }

    #[expect(clippy::disallowed_methods, reason = "this crate is the one place that starts processes")]
    fn start(&self) -> io::Result<Group> {
        let Some((name, rest)) = self.arguments.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program to start"));
        };
        // With a path, the system can start it without a copy of this process.
        let mut command = tokio::process::Command::new(self.find(name)?);
        command
            .arg0(name)
            .args(rest)
            .env_clear()
            .envs(self.env)
            .current_dir(self.directory)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(Group { child: command.spawn()?, ended: false })
    }

    fn find(&self, name: &str) -> io::Result<PathBuf> {
        if name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let path = self.env.get("PATH").map_or(crate::backend::PATH, String::as_str);
        let mut found = path.split(':').map(|directory| Path::new(directory).join(name));
        found.find(|path| path.is_file()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A script's process group. Dropping it kills the group, unless the script has ended.
struct Group {
    child: Child,
    ended: bool,
}

impl Group {
    fn streams(
        &mut self,
    ) -> io::Result<(ChildStdin, tokio::process::ChildStdout, tokio::process::ChildStderr)> {
        let taken = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        match taken {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(io::Error::other("it has no streams")),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A script that was waited for may have lent its number to another process.
        let id = self.child.id().filter(|_| !self.ended).and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // It may have ended in this moment.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

/// Writes what there is to read, as far as somebody reads it.
async fn feed(mut stdin: ChildStdin, input: &[u8]) {
    // A script that closes its input has read what it wants.
    let _ = stdin.write_all(input).await;
}

/// An output, as far as it is kept.
struct Gathered<S> {
    from: S,
    kept: Vec<u8>,
    most: usize,
    cut: bool,
}

impl<S: tokio::io::AsyncRead + AsFd + Unpin> Gathered<S> {
    fn new(from: S, most: usize) -> Self {
        Gathered { from, kept: Vec::new(), most, cut: false }
    }

    /// Takes what is written until the end of the stream.
    async fn gather(&mut self) {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = self.from.read(&mut buffer).await {
            keep(&mut self.kept, &mut self.cut, self.most, buffer.get(..count).unwrap_or_default());
        }
    }

    /// Takes what a script that has ended left in the pipe, and does not wait for those who still hold it.
    fn rest(&mut self) {
        let mut buffer = vec![0; 16 * 1024];
        // One who goes on writing must not hold us here.
        while !self.cut {
            match read_now(self.from.as_fd(), &mut buffer) {
                Ok(count @ 1..) => {
                    keep(&mut self.kept, &mut self.cut, self.most, buffer.get(..count).unwrap_or_default());
                }
                _ => return,
            }
        }
    }
}

fn keep(kept: &mut Vec<u8>, cut: &mut bool, most: usize, bytes: &[u8]) {
    let room = most.saturating_sub(kept.len());
    *cut |= bytes.len() > room;
    kept.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
}

/// Reads without waiting: the stream is one that never makes its reader wait.
fn read_now(from: BorrowedFd<'_>, buffer: &mut [u8]) -> rustix::io::Result<usize> {
    rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *buffer))
}
