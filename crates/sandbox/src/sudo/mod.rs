//! Runs `sudo` for a command that is confined.
//!
//! No confined process can gain privileges, so `sudo` cannot work there. In its place stands a small program, the
//! *stand-in* (this same program in another mode, [`stand_in`]). Over a socket that only that command has, the stand-in
//! sends its arguments, its directory and its three streams to the server. The [`broker`] compares the arguments with
//! the calls that a person has allowed, and starts the real `sudo` outside the sandbox. Nothing else of the command runs
//! there.
//!
//! The password goes to the supervisor of `sudo` on its control socket and from there to `sudo` through a pipe that only
//! an askpass program opens: it is in no argument, no variable and on no standard input.

mod broker;
mod check;
mod stand_in;

use std::fmt;

use serde::{Deserialize, Serialize};

pub(crate) use broker::Broker;
pub(crate) use check::check;
pub(crate) use stand_in::{STREAMS, run as run_stand_in};

/// The variable that tells the stand-in which descriptor its socket is.
pub(crate) const SOCKET_VARIABLE: &str = "PETASOS_SUDO_SOCKET";
/// The argument that makes this program a stand-in. What follows it are the arguments of `sudo`.
pub(crate) const STAND_IN: &str = "as-sudo";
/// The longest request that is read.
const MAX_REQUEST: usize = 64 * 1024;

/// A password for `sudo`. It is never shown.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(String);

impl Password {
    /// That password.
    pub fn new(password: impl Into<String>) -> Self {
        Password(password.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// Says whether a call of `sudo` with these arguments may be carried out. It is asked once for each call.
pub type AllowSudo = Box<dyn FnMut(&[String]) -> bool + Send>;

/// What a command may do with `sudo`.
pub struct Sudo {
    /// The password, which [`crate::Sandbox::check_sudo_password`] has checked.
    pub password: Password,
    /// Says whether a call may be carried out.
    pub allow: AllowSudo,
}

impl fmt::Debug for Sudo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sudo")
    }
}

/// What a stand-in asks for. With it come its standard input, output and error, and a pipe for the [`Reply`].
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    arguments: Vec<String>,
    directory: String,
}

/// What the stand-in is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Refused(String),
    Exited(i32),
}
