//! What this program does when it is started as a supervisor.
//!
//! The supervisor is a *subreaper*: whatever its command leaves behind, however often it forks or makes a session of
//! its own, becomes the supervisor's child in the end. So it can end all of it. Where the system has process namespaces, the
//! supervisor is the first process of one, and the kernel ends all others when it ends. It does when the command ends, and
//! when the server closes the control socket, which the kernel does for a server that was killed.

mod askpass;
mod clean_up;
mod guard;
mod limits;
mod open_files;
mod receive;
mod tree;

use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use crate::confine;
use crate::group::{self, Memory};
use crate::job::{Answer, Confinement, Ended, Job};
use crate::namespaces::{self, Namespaces};
use crate::process::Descriptors;
use crate::sudo;
use askpass::Askpass;
use guard::Guard;

/// How far a command stands back.
const NICENESS: i32 = 10;

/// The lowest number that the socket for `sudo` has in a command: shells and scripts use those below.
const SUDO_SOCKET: i32 = 200;

/// Carries out the one job that standard input gives, or what a confined command has started this program as.
pub fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let mut of_stand_in = arguments.iter().skip_while(|argument| *argument != sudo::STAND_IN).skip(1);
    if let Some(socket) = of_stand_in.next() {
        sudo::run_stand_in(of_stand_in.cloned().collect(), socket.parse().ok());
    }
    match enter_namespaces(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody is left to be told: the server has gone.
        Err(_) => ExitCode::FAILURE,
    }
}

/// Makes the namespaces that the arguments name, and goes on inside of them.
fn enter_namespaces(arguments: &[String]) -> io::Result<()> {
    let has = |mark: &str| arguments.iter().any(|argument| argument == mark);
    ignore_signals()?;
    if has(namespaces::NEW_USER) {
        namespaces::enter_user_namespace()?;
    }
    let is_first = has(namespaces::FIRST_PROCESS);
    if has(namespaces::NEW_PROCESSES) {
        namespaces::enter_process_namespace()?;
        start_first_process(arguments)
    } else if has(namespaces::PROBE) {
        probe(is_first)
    } else {
        if is_first {
            die_with_parent()?;
        }
        supervise()
    }
}

/// Starts the supervisor that is the first process of a namespace, and waits for it.
#[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
fn start_first_process(arguments: &[String]) -> io::Result<()> {
    let done = [namespaces::NEW_USER, namespaces::NEW_PROCESSES];
    let rest = arguments.iter().skip(1).filter(|argument| !done.contains(&argument.as_str()));
    let mut first = std::process::Command::new("/proc/self/exe");
    let status = first.args(rest).arg(namespaces::FIRST_PROCESS).env_clear().status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("the first process of the namespace failed")) }
}

#[cfg(target_os = "linux")]
fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent() -> io::Result<()> {
    Ok(())
}

/// Makes a view of the files, to see whether that works.
fn probe(own_processes: bool) -> io::Result<()> {
    let confinement = Confinement {
        execute: vec!["/usr".into()],
        namespaces: Some(Namespaces { user: false, processes: own_processes }),
        ..Confinement::default()
    };
    enter_view(&confinement, None).map_err(io::Error::other)
}

#[cfg(target_os = "linux")]
fn enter_view(confinement: &Confinement, terminal: Option<&Path>) -> Result<(), String> {
    confine::view::enter(confinement, terminal)
}

#[cfg(not(target_os = "linux"))]
fn enter_view(_: &Confinement, _: Option<&Path>) -> Result<(), String> {
    Err("only Linux has namespaces".to_owned())
}

fn supervise() -> io::Result<()> {
    // Fails if this process leads a session already, which is as good.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut control = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3)?);
    let (mut job, descriptors) = receive::job(&mut control)?;
    // It is there for as long as the command runs.
    let askpass = job.sudo_password.as_ref().map(Askpass::new).transpose()?;
    if let Some(askpass) = &askpass {
        job.env.insert("SUDO_ASKPASS".to_owned(), askpass.program());
    }
    let group = job.group.as_deref();
    let entered =
        group.map_or(Ok(None), |group| group::enter(group).and_then(|()| Memory::of(group).map(Some)));
    let entered = entered.map_err(|error| format!("the control group could not be entered: {error}"));
    let started = entered.and_then(|memory| Ok((start(&mut job, descriptors)?, memory)));
    let answer = match started {
        Ok((command, memory)) => Answer::Ended(attend(command, &job, memory, control.try_clone()?)),
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
fn start(job: &mut Job, descriptors: Descriptors) -> Result<Pid, String> {
    let Descriptors { streams, other } = descriptors;
    // A socket is closed here when the command has it.
    let _socket = prepare(job, other).map_err(|error| format!("it could not be prepared: {error}"))?;
    let job = &*job;
    limits::set(&job.limits).map_err(|error| format!("the limits could not be set: {error}"))?;
    if job.terminal {
        let own = rustix::process::ioctl_tiocsctty(&streams[0]);
        own.map_err(|error| format!("the terminal could not be taken: {error}"))?;
    }
    if let Some(confinement) = job.confinement.as_ref().filter(|confinement| confinement.namespaces.is_some())
    {
        let name = if job.terminal { rustix::termios::ttyname(&streams[0], Vec::new()).ok() } else { None };
        let name = name.map(|name| PathBuf::from(std::ffi::OsStr::from_bytes(name.as_bytes())));
        enter_view(confinement, name.as_deref())?;
    }
    let spawning = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            // The command stands behind its supervisor and the server when the processors are busy. A system that
            // does not let us is no reason not to start.
            let _ = rustix::process::nice(NICENESS);
            if let Some(confinement) = &job.confinement {
                confine::this_thread(confinement)?;
            }
            if job.refuse_unix_sockets {
                confine::refuse_unix_sockets()?;
            }
            spawn(job, streams).map_err(|error| describe(job, &error))
        });
        thread.map(|thread| thread.join().unwrap_or_else(|_| Err("the supervisor ended in a bug".to_owned())))
    });
    spawning.map_err(|error| error.to_string())?
}

/// Goes to the directory of a job that is `sudo`, or lets the command inherit the socket through which it calls `sudo`.
fn prepare(job: &mut Job, other: Option<OwnedFd>) -> io::Result<Option<OwnedFd>> {
    let Some(other) = other else { return Ok(None) };
    if job.sudo_password.is_some() {
        rustix::process::fchdir(&other)?;
        job.directory = ".".into();
        return Ok(None);
    }
    let socket = rustix::io::fcntl_dupfd_cloexec(&other, SUDO_SOCKET)?;
    rustix::io::fcntl_setfd(&socket, FdFlags::empty())?;
    job.env.insert(sudo::SOCKET_VARIABLE.to_owned(), socket.as_raw_fd().to_string());
    Ok(Some(socket))
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
fn attend(command: Pid, job: &Job, memory: Option<Memory>, control: UnixStream) -> Ended {
    let guard = Guard::start(control, command, job, memory);
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
