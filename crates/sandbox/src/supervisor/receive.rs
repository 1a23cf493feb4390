//! Takes the job from the control socket.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use crate::job::Job;
use crate::process::Descriptors;

/// More than any job has.
const MAX_JOB: u64 = 64 * 1024 * 1024;

/// Reads the job and its descriptors.
pub(super) fn job(control: &mut UnixStream) -> io::Result<(Job, Descriptors)> {
    let (descriptors, length) = descriptors(control)?;
    let mut text = Vec::new();
    control.by_ref().take(length.min(MAX_JOB)).read_to_end(&mut text)?;
    Ok((serde_json::from_slice(&text)?, descriptors))
}

fn descriptors(control: &UnixStream) -> io::Result<(Descriptors, u64)> {
    let mut length = [0; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut length)];
    let received = rustix::net::recvmsg(control, parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut streams: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            streams.extend(descriptors);
        }
    }
    let other = if streams.len() > 3 { streams.pop() } else { None };
    match <[OwnedFd; 3]>::try_from(streams) {
        Ok(streams) if received.bytes == 8 => {
            Ok((Descriptors { streams, other }, u64::from_le_bytes(length)))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}
