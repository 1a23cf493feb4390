//! Lines that are typed on the terminal without an editor: while a turn runs, or without being shown.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::terminal::Before;

/// What is wanted of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All lines until nobody wants more.
    Lines,
    /// One line. What comes after it belongs to whoever reads next.
    Line,
    /// One line that is not shown.
    HiddenLine,
}

/// A thread that reads what is wanted until it is stopped.
pub(super) struct Typed {
    lines: mpsc::Receiver<String>,
    /// Returns the beginning of a line that has not ended.
    reading: JoinHandle<String>,
    /// Closing this wakes the thread.
    stop: UnixStream,
    /// Puts the terminal back when this is dropped, whatever happens.
    _before: Option<Before>,
}

impl Typed {
    /// Starts reading.
    pub(super) fn start(wanted: Wanted) -> Result<Typed> {
        let before = (wanted == Wanted::HiddenLine).then(Before::hide).transpose();
        let before = before.context("cannot hide what is typed")?;
        let (stop, stopped) = UnixStream::pair().context("cannot read from the terminal")?;
        let (sender, lines) = mpsc::channel(16);
        let reading = tokio::task::spawn_blocking(move || {
            let mut pending = Vec::new();
            while let Some(bytes) = wait_and_read(&stopped, wanted) {
                pending.extend_from_slice(&bytes);
                // What was typed for the editor ends its lines with a carriage return.
                while let Some(end) = pending.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                    let line: Vec<u8> = pending.drain(..=end).collect();
                    let sent = sender.blocking_send(String::from_utf8_lossy(&line[..end]).into_owned());
                    if sent.is_err() || wanted != Wanted::Lines {
                        return String::new();
                    }
                }
            }
            String::from_utf8_lossy(&pending).into_owned()
        });
        Ok(Typed { lines, reading, stop, _before: before })
    }

    /// The next line; none at the end of the input.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Gives the terminal back, with the lines that were typed and not asked for, and the beginning of another.
    pub(super) async fn stop(self) -> (Vec<String>, String) {
        let Typed { mut lines, reading, stop, _before } = self;
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
fn wait_and_read(stopped: &UnixStream, wanted: Wanted) -> Option<Vec<u8>> {
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
        let is_gone = sources[0].revents().is_none_or(|events| events.contains(PollFlags::POLLHUP));
        return match file.read(&mut buffer) {
            // Ctrl-D ends what is asked for. Nothing is asked for beside a turn.
            Ok(0) if wanted == Wanted::Lines && !is_gone => continue,
            Ok(0) | Err(_) => None,
            Ok(length) => Some(buffer[..length].to_vec()),
        };
    }
}
