//! Lines that are typed on the terminal without an editor: while a turn runs, or without being shown.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::termios::{self, LocalFlags, SetArg, Termios};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Whether what is typed is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// A thread that reads lines until it is stopped, or a single one if that is hidden: what comes after a secret may be
/// anything, and belongs to whoever reads next.
pub(super) struct Typed {
    lines: mpsc::Receiver<String>,
    /// Returns the beginning of a line that has not ended.
    reading: JoinHandle<String>,
    /// Closing this wakes the thread.
    stop: UnixStream,
    /// Puts the terminal back when this is dropped, whatever happens.
    _echo: EchoOff,
}

impl Typed {
    /// Starts reading.
    pub(super) fn start(echo: Echo) -> Result<Typed> {
        let restore = EchoOff::set(echo).context("cannot hide what is typed")?;
        let (stop, stopped) = UnixStream::pair().context("cannot read from the terminal")?;
        let (sender, lines) = mpsc::channel(16);
        let reading = tokio::task::spawn_blocking(move || {
            let mut pending = Vec::new();
            while let Some(bytes) = wait_and_read(&stopped) {
                pending.extend_from_slice(&bytes);
                // What was typed for the editor ends its lines with a carriage return.
                while let Some(end) = pending.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    let sent = sender.blocking_send(String::from_utf8_lossy(&line[..end]).into_owned());
                    if sent.is_err() || echo == Echo::Off {
                        return String::new();
                    }
                }
            }
            String::from_utf8_lossy(&pending).into_owned()
        });
        Ok(Typed { lines, reading, stop, _echo: restore })
    }

    /// The next line; none at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Gives the terminal back, with the lines that were typed and not asked for, and the beginning of another.
    pub(super) async fn stop(self) -> (Vec<String>, String) {
        let Typed { mut lines, reading, stop, _echo } = self;
        drop(stop);
        let mut rest = Vec::new();
        while let Some(line) = lines.recv().await {
            rest.push(line);
        }
        // A thread that panicked does not read any more either.
        (rest, reading.await.unwrap_or_default())
    }
}

/// Reads what the terminal has, which is a line at a time; none when it is at its end or nobody wants more.
fn wait_and_read(stopped: &UnixStream) -> Option<Vec<u8>> {
    let stdin = std::io::stdin();
    loop {
        let mut sources =
            [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        match poll(&mut sources, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        if sources[1].any().unwrap_or(true) {
            return None;
        }
        // Not through `Stdin`, which reads ahead: what comes after the line belongs to whoever reads next.
        let mut file = std::fs::File::from(stdin.as_fd().try_clone_to_owned().ok()?);
        let mut buffer = vec![0; 4096];
        return match file.read(&mut buffer) {
            Ok(0) | Err(_) => None,
            Ok(length) => Some(buffer[..length].to_vec()),
        };
    }
}

/// The terminal's settings from before.
struct EchoOff(Option<Termios>);

impl EchoOff {
    fn set(echo: Echo) -> nix::Result<EchoOff> {
        if echo == Echo::On {
            return Ok(EchoOff(None));
        }
        let stdin = std::io::stdin();
        let before = termios::tcgetattr(&stdin)?;
        let mut hidden = before.clone();
        hidden.local_flags.remove(LocalFlags::ECHO);
        termios::tcsetattr(&stdin, SetArg::TCSADRAIN, &hidden)?;
        Ok(EchoOff(Some(before)))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // There is nothing more to try.
            let _ = termios::tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, before);
        }
    }
}
