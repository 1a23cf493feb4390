//! What this program does when a confined command starts it as `sudo`.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::{MAX_REQUEST, Reply, Request};

/// The descriptors that hold the caller's streams: standard ones may be written to by a test's own main function.
pub(crate) const STREAMS: [i32; 3] = [5, 6, 7];

/// Has `sudo` run with these arguments, and ends as it ended.
pub(crate) fn run(arguments: Vec<String>, socket: Option<i32>) -> ! {
    let code = match ask(arguments, socket) {
        Ok(Reply::Exited(code)) => code,
        Ok(Reply::Refused(why)) => failed(&why),
        Err(error) => failed(&format!("it cannot be reached from here: {error}")),
    };
    std::process::exit(code)
}

fn ask(arguments: Vec<String>, socket: Option<i32>) -> io::Result<Reply> {
    let socket = socket.ok_or_else(|| io::Error::other("its socket was closed on the way"))?;
    let directory = std::env::current_dir()?.to_string_lossy().into_owned();
    let request = serde_json::to_vec(&Request { arguments, directory })?;
    if request.len() > MAX_REQUEST {
        return Err(io::Error::other(format!("its arguments have more than {MAX_REQUEST} bytes")));
    }
    let (mut answer, reply) = io::pipe()?;
    let [stdin, stdout, stderr] = [inherited(STREAMS[0])?, inherited(STREAMS[1])?, inherited(STREAMS[2])?];
    let reply = OwnedFd::from(reply);
    let descriptors: [BorrowedFd<'_>; 4] = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), reply.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    rustix::net::sendmsg(inherited(socket)?, &[IoSlice::new(&request)], &mut ancillary, SendFlags::NOSIGNAL)?;
    drop(reply);
    let mut text = String::new();
    answer.read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(|_| io::Error::other("the command has ended"))
}

/// A descriptor that the caller has left open. Taking it by its number is safe only as a copy that the kernel makes.
#[cfg(target_os = "linux")]
fn inherited(number: i32) -> io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
    let this = pidfd_open(getpid(), PidfdFlags::empty())?;
    Ok(pidfd_getfd(this, number, PidfdGetfdFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn inherited(_: i32) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

fn failed(why: &str) -> i32 {
    if let Ok(stderr) = inherited(STREAMS[2]) {
        // Nobody is left to be told otherwise.
        let _ = writeln!(File::from(stderr), "sudo: {why}");
    }
    1
}
