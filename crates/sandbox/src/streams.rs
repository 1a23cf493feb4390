//! The streams of a command: pipes, or a terminal.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;

/// What a command reads from and writes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Three pipes.
    Separate,
    /// Two pipes: errors go where the output goes.
    Merged,
    /// A terminal of its own.
    Terminal(TerminalSize),
}

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    /// Lines.
    pub rows: u16,
    /// Characters in a line.
    pub columns: u16,
}

/// What the command writes is read here.
pub(crate) type Output = Box<dyn AsyncRead + Send + Unpin>;
/// What is written here the command reads.
pub(crate) type Input = Box<dyn AsyncWrite + Send + Unpin>;

/// Our ends of the streams.
pub(crate) struct Ours {
    pub(crate) stdin: Input,
    pub(crate) stdout: Output,
    pub(crate) stderr: Option<Output>,
}

/// The command's ends: standard input, output and error.
pub(crate) type Theirs = [OwnedFd; 3];

pub(crate) fn open(streams: Streams) -> io::Result<(Ours, Theirs)> {
    match streams {
        Streams::Terminal(size) => terminal(size),
        Streams::Separate => {
            let (stderr, their_stderr) = std::io::pipe()?;
            let (mut ours, [stdin, stdout]) = two_pipes()?;
            ours.stderr = Some(Box::new(pipe::Receiver::from_owned_fd(stderr.into())?));
            Ok((ours, [stdin, stdout, their_stderr.into()]))
        }
        Streams::Merged => {
            let (ours, [stdin, stdout]) = two_pipes()?;
            let stderr = stdout.try_clone()?;
            Ok((ours, [stdin, stdout, stderr]))
        }
    }
}

fn two_pipes() -> io::Result<(Ours, [OwnedFd; 2])> {
    let (their_stdin, stdin) = std::io::pipe()?;
    let (stdout, their_stdout) = std::io::pipe()?;
    let ours = Ours {
        stdin: Box::new(pipe::Sender::from_owned_fd(stdin.into())?),
        stdout: Box::new(pipe::Receiver::from_owned_fd(stdout.into())?),
        stderr: None,
    };
    Ok((ours, [their_stdin.into(), their_stdout.into()]))
}

fn terminal(size: TerminalSize) -> io::Result<(Ours, Theirs)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let name = ptsname(&master, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty())?;
    tcsetwinsize(&slave, Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
    #[expect(
        deprecated,
        reason = "its unsoundness needs a type that changes its descriptor, and this one never does"
    )]
    let master = Master(Arc::new(AsyncFd::new(master)?));
    let ours = Ours { stdin: Box::new(master.clone()), stdout: Box::new(master), stderr: None };
    let theirs = [slave.try_clone()?, slave.try_clone()?, slave];
    Ok((ours, theirs))
}

/// Our side of a terminal.
#[derive(Clone)]
struct Master(Arc<AsyncFd<OwnedFd>>);

impl AsyncRead for Master {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(context))?;
            let read = guard.try_io(|master| {
                rustix::io::read(master.get_ref(), buffer.initialize_unfilled()).map_err(io::Error::from)
            });
            match read {
                Ok(Ok(count)) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                // A terminal that nobody has open any more says so with an error; it is the end all the same.
                Ok(Err(error)) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for Master {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(context))?;
            let written =
                guard.try_io(|master| rustix::io::write(master.get_ref(), bytes).map_err(io::Error::from));
            if let Ok(result) = written {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
