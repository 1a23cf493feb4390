//! A command that runs, seen from the server.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};

use crate::group::Group;
use crate::job::{Answer, Ended, Job, Limit, TERMINATE};
use crate::sandbox::Supervisor;
use crate::spare::Waiting;
use crate::streams::{self, Streams};

/// A command that runs. Dropping it ends the command and everything that it has started.
pub struct Process {
    /// What is written here the command reads. Taking it out and dropping it ends the command's input.
    pub stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    /// What the command writes. It ends when the command and all that it has started have ended.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What it writes to standard error, if that is a stream of its own.
    pub stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    handle: Handle,
}

/// The hold on a command apart from its streams. Dropping it ends the command.
pub struct Handle {
    orders: mpsc::UnboundedSender<()>,
    ended: watch::Receiver<Option<Ended>>,
}

/// What is sent to a supervisor besides its job.
pub(crate) struct Descriptors {
    /// The command's streams.
    pub(crate) streams: streams::Theirs,
    /// What else the job needs, see [`Job::sudo_password`].
    pub(crate) other: Option<OwnedFd>,
}

/// What a command has besides its streams.
#[derive(Default)]
pub(crate) struct Belongings {
    /// See [`Descriptors::other`].
    pub(crate) other: Option<OwnedFd>,
    /// The control group that its job names.
    pub(crate) group: Option<Group>,
}

impl Process {
    /// Waits for the command's end. Nobody reads its output meanwhile: take the streams out to do so.
    pub async fn wait(&mut self) -> Ended {
        self.handle.wait().await
    }

    /// Asks the command and all that it has started to end.
    pub fn terminate(&self) {
        self.handle.terminate();
    }

    /// Takes it apart, for a task that reads and one that waits.
    pub fn into_parts(self) -> (Option<streams::Input>, streams::Output, Option<streams::Output>, Handle) {
        (self.stdin, self.stdout, self.stderr, self.handle)
    }
}

impl Handle {
    /// Waits for the command's end.
    pub async fn wait(&mut self) -> Ended {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.clone().unwrap_or_default(),
            Err(_) => lost("the server is stopping"),
        }
    }

    /// How the command ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    /// Asks the command and all that it has started to end.
    pub fn terminate(&self) {
        // It may be over already.
        let _ = self.orders.send(());
    }
}

/// Starts a supervisor and gives it the job.
pub(crate) fn start(
    supervisor: &Supervisor,
    job: &Job,
    streams: Streams,
    belongings: Belongings,
) -> io::Result<Process> {
    let (ours, theirs) = streams::open(streams)?;
    let Belongings { other, group } = belongings;
    let handle = start_on(supervisor, job, Descriptors { streams: theirs, other }, group)?;
    Ok(Process { stdin: Some(ours.stdin), stdout: ours.stdout, stderr: ours.stderr, handle })
}

/// Starts a supervisor and gives it a job whose streams are somebody else's.
pub(crate) fn start_on(
    supervisor: &Supervisor,
    job: &Job,
    descriptors: Descriptors,
    group: Option<Group>,
) -> io::Result<Handle> {
    let namespaces = job.confinement.as_ref().and_then(|confinement| confinement.namespaces);
    let job = serde_json::to_vec(job)?;
    let spare = supervisor.spare.take(namespaces);
    let ready = spare.filter(|waiting| send(&waiting.control, &descriptors, job.len()).is_ok());
    let Waiting { control, child } = match ready {
        Some(waiting) => waiting,
        None => {
            let waiting = Waiting::start(supervisor, namespaces)?;
            send(&waiting.control, &descriptors, job.len())?;
            waiting
        }
    };
    // The command has them now, and must be the only one.
    drop(descriptors);
    control.set_nonblocking(true)?;
    let control = UnixStream::from_std(control)?;
    let supervisor = supervisor.clone();
    let (orders, inbox) = mpsc::unbounded_channel();
    let (teller, ended) = watch::channel(None);
    tokio::spawn(async move {
        let mut ended = attend(control, job, inbox).await.unwrap_or_else(|error| lost(&error.to_string()));
        if group.as_ref().is_some_and(Group::ran_out_of_memory) {
            ended.over = Some(Limit::Memory);
        }
        teller.send_replace(Some(ended));
        reap(child).await;
        drop(group);
        supervisor.spare.prepare(&supervisor, namespaces);
    });
    Ok(Handle { orders, ended })
}

/// Sends the descriptors and the length of the job. It fits into the socket before anybody reads.
fn send(control: &StdUnixStream, descriptors: &Descriptors, length: usize) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: Vec<_> = descriptors.streams.iter().chain(&descriptors.other).map(AsFd::as_fd).collect();
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let length = u64::try_from(length).unwrap_or(u64::MAX).to_le_bytes();
    rustix::net::sendmsg(control, &[IoSlice::new(&length)], &mut ancillary, SendFlags::empty())?;
    Ok(())
}

/// Gives the job and the orders, and waits for the answer.
async fn attend(
    control: UnixStream,
    job: Vec<u8>,
    mut orders: mpsc::UnboundedReceiver<()>,
) -> io::Result<Ended> {
    let (reader, mut writer) = control.into_split();
    writer.write_all(&job).await?;
    let mut lines = BufReader::new(reader).lines();
    let mut asked_to_end = false;
    loop {
        tokio::select! {
            line = lines.next_line() => return Ok(match line? {
                Some(line) => match serde_json::from_str(&line)? {
                    Answer::Ended(ended) => ended,
                    Answer::NotStarted(why) => Ended { problem: Some(why), ..Ended::default() },
                },
                None => lost("its supervisor was killed"),
            }),
            order = orders.recv(), if !asked_to_end => match order {
                Some(()) => writer.write_all(&[TERMINATE]).await?,
                None => {
                    asked_to_end = true;
                    writer.shutdown().await?;
                }
            },
        }
    }
}

async fn reap(mut child: Child) {
    if let Err(error) = child.wait().await {
        tracing::warn!(%error, "a supervisor could not be waited for");
    }
}

fn lost(why: &str) -> Ended {
    Ended { problem: Some(format!("what became of the command is not known: {why}")), ..Ended::default() }
}
