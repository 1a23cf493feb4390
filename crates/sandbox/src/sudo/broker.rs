//! Carries out the calls of `sudo` that a confined command makes.

use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::{MAX_REQUEST, Reply, Request, Sudo};
use crate::job::Job;
use crate::process::{self, Descriptors};
use crate::sandbox::Supervisor;

/// How many calls may run at once.
const MOST_AT_ONCE: usize = 16;

/// Carries out the calls of one command.
pub(crate) struct Broker {
    pub(crate) sudo: Sudo,
    pub(crate) program: PathBuf,
    pub(crate) supervisor: Supervisor,
    pub(crate) workspace: PathBuf,
    /// What a call's job has besides its arguments, its password and its directory.
    pub(crate) job: Job,
}

/// One call: what is asked for, the three streams, and where the reply goes.
struct Call {
    request: Request,
    streams: [OwnedFd; 3],
    reply: OwnedFd,
}

impl Broker {
    /// Starts to listen, and returns the command's end of the socket. The task ends, and with it whatever `sudo` still
    /// runs, when no process has the socket open any more.
    pub(crate) fn start(self) -> io::Result<(OwnedFd, tokio::task::JoinHandle<()>)> {
        // Each message is one call, whole: many processes share the command's end.
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        let ours = StdUnixStream::from(ours);
        ours.set_nonblocking(true)?;
        let ours = UnixStream::from_std(ours)?;
        Ok((theirs, tokio::spawn(self.listen(ours))))
    }

    async fn listen(mut self, socket: UnixStream) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                received = socket.async_io(Interest::READABLE, || receive(&socket)) => match received {
                    Ok(Received::Call(call)) => {
                        if let Some(wait) = self.carry_out(call, running.len()) {
                            running.spawn(wait);
                        }
                    }
                    Ok(Received::Nonsense) => {}
                    Ok(Received::End) | Err(_) => return,
                },
                Some(_) = running.join_next(), if !running.is_empty() => {}
            }
        }
    }

    /// Starts a call, if it may be made. What is returned waits for its end.
    fn carry_out(&mut self, call: Call, running: usize) -> Option<impl Future<Output = ()> + Send + use<>> {
        let Call { request, streams, reply } = call;
        let started = if running >= MOST_AT_ONCE {
            Err(format!("{MOST_AT_ONCE} calls of sudo run already, the most there may"))
        } else {
            self.run(request, streams)
        };
        match started {
            Ok(mut handle) => Some(async move {
                let ended = handle.wait().await;
                let code = ended.code.or(ended.signal.map(|signal| 128 + signal)).unwrap_or(1);
                answer(reply, &ended.problem.map_or(Reply::Exited(code), Reply::Refused));
            }),
            Err(why) => {
                answer(reply, &Reply::Refused(why));
                None
            }
        }
    }

    fn run(&mut self, request: Request, streams: [OwnedFd; 3]) -> Result<process::Handle, String> {
        let directory = directory(&self.workspace, Path::new(&request.directory))
            .map_err(|error| format!("it cannot run in {}: {error}", request.directory))?;
        if !(self.sudo.allow)(&request.arguments) {
            return Err("this call is not in the command that was allowed, or was made already".to_owned());
        }
        // `-k`: the password is asked for each time, so that nothing of it lasts beyond this call.
        let own = [self.program.to_string_lossy().as_ref(), "-k", "-A", "-p", ""].map(str::to_owned);
        let mut job = self.job.clone();
        job.arguments = own.into_iter().chain(request.arguments).collect();
        job.sudo_password = Some(self.sudo.password.clone());
        process::start_on(&self.supervisor, &job, Descriptors { streams, other: Some(directory) }, None)
            .map_err(|error| error.to_string())
    }
}

/// A directory of the workspace. The kernel resolves the path: no link leads out of it.
fn directory(workspace: &Path, path: &Path) -> io::Result<OwnedFd> {
    let outside = || io::Error::other("it is outside the workspace");
    let below = path.strip_prefix(workspace).map_err(|_| outside())?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(workspace, flags, Mode::empty())?;
    #[cfg(target_os = "linux")]
    let opened = rustix::fs::openat2(root, below, flags, Mode::empty(), ResolveFlags::BENEATH);
    #[cfg(not(target_os = "linux"))]
    let opened = Err(rustix::io::Errno::NOSYS);
    Ok(opened?)
}

enum Received {
    Call(Call),
    /// Something that is no call. Whoever sent it gets no reply.
    Nonsense,
    End,
}

fn receive(socket: &UnixStream) -> io::Result<Received> {
    let mut bytes = vec![0; MAX_REQUEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let parts = &mut [IoSliceMut::new(&mut bytes)];
    let received = rustix::net::recvmsg(socket.as_fd(), parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    if received.bytes == 0 && descriptors.is_empty() {
        return Ok(Received::End);
    }
    let request = serde_json::from_slice(bytes.get(..received.bytes).unwrap_or_default());
    let descriptors = <[OwnedFd; 4]>::try_from(descriptors);
    Ok(match (request, descriptors) {
        (Ok(request), Ok([stdin, stdout, stderr, reply])) => {
            Received::Call(Call { request, streams: [stdin, stdout, stderr], reply })
        }
        _ => Received::Nonsense,
    })
}

/// Tells the stand-in. A reply is shorter than what any pipe takes at once, so that nobody can make this wait.
fn answer(reply: OwnedFd, text: &Reply) {
    let is_pipe = rustix::fs::fstat(&reply)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Fifo);
    let unblocked = rustix::fs::fcntl_setfl(&reply, OFlags::NONBLOCK | OFlags::WRONLY);
    if is_pipe && unblocked.is_ok() {
        // A stand-in that is gone needs no reply.
        let _ = serde_json::to_vec(text).map(|text| File::from(reply).write_all(&text));
    }
}
