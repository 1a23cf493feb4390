//! Hands a password to `sudo`, and to nobody else.
//!
//! `sudo -A` starts the program that `SUDO_ASKPASS` names and reads the password from it. Here that is a script in memory
//! which reads a pipe of this process. The pipe holds the password once: whoever asks a second time gets nothing.

use std::fs::File;
use std::io::{self, PipeReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::sudo::Password;

/// A password that waits to be read. Dropping it takes it away.
pub(super) struct Askpass {
    _password: PipeReader,
    script: OwnedFd,
}

impl Askpass {
    #[cfg(target_os = "linux")]
    pub(super) fn new(password: &Password) -> io::Result<Askpass> {
        use rustix::fs::{MemfdFlags, memfd_create};
        let (reader, mut writer) = io::pipe()?;
        // A pipe takes far more than any password at once.
        writer.write_all(format!("{}\n", password.expose()).as_bytes())?;
        let pid = rustix::process::getpid().as_raw_nonzero();
        let create = |flags| memfd_create("askpass", flags | MemfdFlags::CLOEXEC);
        // Older kernels do not know that it may be wanted to be executable: there everything is.
        let script = create(MemfdFlags::EXEC).or_else(|_| create(MemfdFlags::empty()))?;
        let text = format!("#!/bin/sh\nexec cat /proc/{pid}/fd/{}\n", reader.as_raw_fd());
        File::from(script.try_clone()?).write_all(text.as_bytes())?;
        Ok(Askpass { _password: reader, script })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new(_: &Password) -> io::Result<Askpass> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// What `SUDO_ASKPASS` must be.
    pub(super) fn program(&self) -> String {
        format!("/proc/{}/fd/{}", rustix::process::getpid().as_raw_nonzero(), self.script.as_raw_fd())
    }
}
