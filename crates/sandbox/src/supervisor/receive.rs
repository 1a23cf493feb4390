//! Takes the job from the control socket.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::job::Job;

/// More than any job has.
const MAX_JOB: u64 = 64 * 1024 * 1024;

/// Reads the job and the command's three streams.
pub(super) fn job(control: &mut UnixStream) -> io::Result<(Job, [OwnedFd; 3])> {
    let (streams, length) = streams(control)?;
    let mut text = Vec::new();
    control.by_ref().take(length.min(MAX_JOB)).read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, streams))
}

fn streams(control: &UnixStream) -> io::Result<([OwnedFd; 3], u64)> {
    let mut length = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut length)];
    let received = rustix::net::recvmsg(control, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            streams.extend(descriptors);
        }
    }
    match <[OwnedFd; 3]>::try_from(streams) {
        Ok(streams) if received.bytes == 8 => Ok((streams, u64::from_le_bytes(length))),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
