//! A command at a terminal of its own, and a person who types there.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, openpty};
use nix::sys::termios::{LocalFlags, SpecialCharacterIndices, tcgetattr};

use crate::installation::signal;
use crate::talker::Output;

/// A running command at a terminal.
pub(crate) struct Terminal {
    child: Child,
    keyboard: File,
    screen: Output,
}

impl Terminal {
    /// Starts a command. What it says beside its result goes to `stderr` if that is given, and to the terminal if not.
    pub(crate) fn start(command: Command, stderr: Option<File>) -> Terminal {
        Terminal::start_after("", command, stderr)
    }

    /// The same, at a terminal where this was typed before.
    pub(crate) fn start_after(typed: &str, mut command: Command, stderr: Option<File>) -> Terminal {
        let (ours, theirs) = open();
        let copy = || theirs.try_clone().unwrap();
        command.env("TERM", "xterm").stdin(copy()).stdout(copy());
        match stderr {
            Some(file) => command.stderr(file),
            None => command.stderr(copy()),
        };
        let mut ours = File::from(ours);
        ours.write_all(typed.as_bytes()).unwrap();
        let child = command.spawn().unwrap();
        Terminal { child, screen: Output::of(ours.try_clone().unwrap()), keyboard: ours }
    }

    /// Types a line.
    pub(crate) fn say(&mut self, line: &str) {
        self.press(&format!("{line}\n"));
    }

    /// Types exactly this.
    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Sends a signal to the command, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits until this is on the screen, after what was waited for before.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, words: &str) {
        assert!(self.screen.wait_for(words), "{words:?} does not come; there is\n{}", self.screen.shown());
    }

    /// Whether what is typed is shown, and whether a key stops the command, as things are now.
    pub(crate) fn settings(&self) -> (bool, bool) {
        let settings = tcgetattr(&self.keyboard).unwrap();
        let stops = settings.control_chars[SpecialCharacterIndices::VSUSP as usize] != 0;
        (settings.local_flags.contains(LocalFlags::ECHO), stops)
    }

    /// What is on the screen.
    pub(crate) fn shown(&self) -> String {
        self.screen.shown()
    }

    /// Waits for the end, and returns the exit code.
    #[track_caller]
    pub(crate) fn finish(mut self) -> Option<i32> {
        self.wait()
    }

    /// The same, for who looks at the terminal afterwards.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Option<i32> {
        assert!(self.screen.wait_for_end(), "it does not end; there is\n{}", self.screen.shown());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both sides of a new terminal: the person's and the program's.
fn open() -> (OwnedFd, OwnedFd) {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    for side in [&master, &slave] {
        fcntl(side, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).unwrap();
    }
    (master, slave)
}
