//! What this program does when it is started as a supervisor.
//!
//! The supervisor is a *subreaper*: whatever its command leaves behind, however often it forks or makes a session of
//! its own, becomes the supervisor's child in the end. So it can end all of it. It does when the command ends, and
//! when the server closes the control socket, which the kernel does for a server that was killed.

mod clean_up;
mod guard;
mod limits;
mod receive;
mod tree;

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::confine;
use crate::job::{Answer, Ended, Job};
use guard::Guard;

/// How far a command stands back.
const NICENESS: i32 = 10;

/// Carries out the one job that standard input gives.
pub fn main() -> ExitCode {
    match supervise() {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is left to be told: the server has gone.
        Err(_) => ExitCode::FAILURE,
    }
}

fn supervise() -> io::Result<()> {
    ignore_signals()?;
    // Fails if this process leads a session already, which is as good.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?);
    let (job, streams) = receive::job(&mut control)?;
    let answer = match start(&job, streams) {
        Ok(command) => Answer::Ended(attend(command, &job, control.try_clone()?)),
        Err(why) => Answer::NotStarted(why),
    };
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    control.write_all(&line)
}

/// What is typed at the command's terminal, and what a system sends to all processes at once, is not for us: the end
/// of the control socket is.
fn ignore_signals() -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU};
    let never_read = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN, SIGTTOU] {
        signal_hook::flag::register(signal, Arc::clone(&never_read))?;
    }
    Ok(())
}

/// Starts the command on a thread that is confined before.
fn start(job: &Job, streams: [OwnedFd; 3]) -> Result<Pid, String> {
    limits::set(&job.limits).map_err(|error| format!("the limits could not be set: {error}"))?;
    if job.terminal {
        let own = rustix::process::ioctl_tiocsctty(&streams[0]);
        own.map_err(|error| format!("the terminal could not be taken: {error}"))?;
    }
    let spawning = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            // The command stands behind its supervisor and the server when the processors are busy. A system that
            // does not let us is no reason not to start.
            let _ = rustix::process::nice(NICENESS);
            if let Some(confinement) = &job.confinement {
                confine::this_thread(confinement)?;
            }
            spawn(job, streams).map_err(|error| describe(job, &error))
        });
        thread.map(|thread| thread.join().unwrap_or_else(|_| Err("the supervisor ended in a bug".to_owned())))
    });
    spawning.map_err(|error| error.to_string())?
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
fn spawn(job: &Job, [stdin, stdout, stderr]: [OwnedFd; 3]) -> io::Result<Pid> {
    let Some((program, arguments)) = job.arguments.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no program"));
    };
    let mut command = std::process::Command::new(program);
    command.args(arguments).env_clear().envs(&job.env).current_dir(&job.directory);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    if !job.terminal {
        // A terminal belongs to our session and its first group, in which the command stays then.
        command.process_group(0);
    }
    let child = command.spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the system gave no process id"))
}

fn describe(job: &Job, error: &io::Error) -> String {
    let program = job.arguments.first().map_or("", String::as_str);
    match error.kind() {
        io::ErrorKind::NotFound if !job.directory.is_dir() => {
            format!("the directory {} is not there", job.directory.display())
        }
        io::ErrorKind::NotFound => format!("the program {program} is not there"),
        _ => format!("{program} could not be started: {error}"),
    }
}

/// Waits for the command, then ends what it left behind.
fn attend(command: Pid, job: &Job, control: UnixStream) -> Ended {
    let guard = Guard::start(control, command, job);
    let status = wait_for(command);
    // Before anything else is started: the guard would end that too.
    let over = guard.finish();
    let left_running = tree::end_all(command);
    let code = status.and_then(WaitStatus::exit_status);
    if code.is_none() {
        clean_up::clean_up(job);
    }
    Ended { code, signal: status.and_then(WaitStatus::terminating_signal), over, left_running, problem: None }
}

/// Reaps children, adopted ones too, until the command is among them.
fn wait_for(command: Pid) -> Option<WaitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => return Some(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}
