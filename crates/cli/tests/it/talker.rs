//! A command that is talked to through pipes.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use crate::installation::{Finished, PATIENCE, signal};

/// A running command, its input and what it has said so far.
pub(crate) struct Talker {
    child: Child,
    input: Option<ChildStdin>,
    stdout: Output,
    stderr: Output,
}

/// What comes out of a pipe. Text need not come in lines.
pub(crate) struct Output {
    pieces: Receiver<Vec<u8>>,
    text: Vec<u8>,
    /// How much was waited for already.
    seen: usize,
}

impl Talker {
    pub(crate) fn start(mut command: Command) -> Talker {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = Output::of(child.stdout.take().unwrap());
        let stderr = Output::of(child.stderr.take().unwrap());
        Talker { input: child.stdin.take(), child, stdout, stderr }
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Types everything there is, and ends the input.
    pub(crate) fn say_all(&mut self, text: &str) {
        self.input.take().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until this is printed, after what was waited for before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        if !self.stdout.wait_for(words) {
            panic!(
                "{words:?} does not come; there is\n{}\nand\n{}",
                self.stdout.shown(),
                self.stderr.shown()
            );
        }
    }

    /// The same on standard error.
    #[track_caller]
    pub(crate) fn wait_for_note(&mut self, words: &str) {
        assert!(self.stderr.wait_for(words), "{words:?} does not come; there is\n{}", self.stderr.shown());
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Ends the input and waits for the end.
    pub(crate) fn finish(mut self) -> Finished {
        self.input = None;
        let status = self.child.wait().unwrap();
        Finished {
            success: status.success(),
            code: status.code(),
            stdout: self.stdout.rest(),
            stderr: self.stderr.rest(),
        }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Output {
    pub(crate) fn of(mut source: impl Read + Send + 'static) -> Output {
        let (sender, pieces) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 4096];
            while let Ok(length @ 1..) = source.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Output { pieces, text: Vec::new(), seen: 0 }
    }

    /// Waits until this comes, after what was waited for before. Returns whether it did.
    pub(crate) fn wait_for(&mut self, words: &str) -> bool {
        loop {
            let unseen = &self.text[self.seen..];
            if let Some(at) = unseen.windows(words.len()).position(|window| window == words.as_bytes()) {
                self.seen += at + words.len();
                return true;
            }
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => self.text.extend(piece),
                Err(_) => return false,
            }
        }
    }

    /// Waits until nothing more can come. Returns whether that happened.
    pub(crate) fn wait_for_end(&mut self) -> bool {
        loop {
            match self.pieces.recv_timeout(PATIENCE) {
                Ok(piece) => self.text.extend(piece),
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }

    /// What has come so far.
    pub(crate) fn shown(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Everything up to the end.
    fn rest(&mut self) -> String {
        self.text.extend(self.pieces.iter().flatten());
        String::from_utf8(std::mem::take(&mut self.text)).unwrap()
    }
}
