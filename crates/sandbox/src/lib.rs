//! The only place that starts processes.
//!
//! [`Sandbox::start`] starts a command and gives its streams. Between the server and the command stands a
//! *supervisor*, this same program in another mode: it confines the command, keeps it within its limits, adopts
//! whatever the command leaves behind, and ends all of it when the command ends, when it is told to, or when the
//! server dies in whatever way. One supervisor looks after one command.
//!
//! [`Script`] is for short programs of the operator's own, which are trusted and must cost next to nothing.
//!
//! This crate must not know what a command is for: no tools, no sessions, no permissions.

mod backend;
mod confine;
mod error;
mod group;
mod job;
mod namespaces;
mod process;
mod promises;
mod report;
mod sandbox;
mod script;
mod settings;
mod spare;
mod streams;
mod sudo;
pub mod supervisor;

pub use error::{Error, Result};
pub use job::{Ended, Limit};
pub use process::{Handle, Process};
pub use promises::Promise;
pub use report::{Report, find};
pub use sandbox::{Command, Confine, FileWrites, Sandbox, Supervisor};
pub use script::{Said, Script};
pub use settings::{Backend, Fallback, Kernel, Limits, Network, Settings};
pub use streams::{Streams, TerminalSize};
pub use sudo::{AllowSudo, Password, Sudo};

/// In the root of a test binary: makes it a program that [`Supervisor::of_tests`] can start.
#[macro_export]
macro_rules! supervisor_of_tests {
    () => {
        /// Does nothing, unless this program was started as a supervisor.
        #[test]
        fn sandbox_supervisor() -> std::process::ExitCode {
            if std::env::args().any(|argument| argument == $crate::Supervisor::MARK_OF_TESTS) {
                $crate::supervisor::main()
            } else {
                std::process::ExitCode::SUCCESS
            }
        }
    };
}
