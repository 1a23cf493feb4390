//! What can go wrong when a command is started.

use std::io;

/// The result of starting a command.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a command was not started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system cannot confine it, and the settings do not allow to run it unconfined.
    #[error(
        "commands cannot be confined here: {missing}. Set sandbox.backend to bubblewrap or docker, or sandbox.fallback \
         to unconfined to run them without a sandbox"
    )]
    CannotConfine {
        /// What the system lacks.
        missing: String,
    },
    /// It has an argument that no system would take.
    #[error("the command has {bytes} bytes, and at most {most} fit; put it into a file and run that")]
    TooLong {
        /// The length of the longest argument.
        bytes: usize,
        /// What fits.
        most: usize,
    },
    /// `sudo` cannot be used for it.
    #[error("{0}")]
    Sudo(String),
    /// The system did not let us.
    #[error("a process could not be started: {0}")]
    Start(#[from] io::Error),
}
