//! Listens to the server, and watches over the limits that no kernel keeps for a whole tree of processes.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::tree;
use crate::job::{Job, Limit, TERMINATE};
use crate::settings::Limits;

/// How often the limits are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often, right after the start and while there are many processes: a fork bomb is quick.
const SHORT_INTERVAL: Duration = Duration::from_millis(10);

/// Looks after a command on a thread of its own.
pub(super) struct Guard {
    over: Arc<Mutex<Option<Limit>>>,
}

impl Guard {
    pub(super) fn start(control: UnixStream, command: Pid, job: &Job) -> Guard {
        let over = Arc::new(Mutex::new(None));
        let watch = Watch {
            control,
            command,
            limits: job.limits,
            clean_up: job.clean_up.clone(),
            over: Arc::clone(&over),
        };
        let thread = std::thread::Builder::new().spawn(move || watch.run());
        if thread.is_err() {
            // Nothing may run that nobody can end.
            let _ = kill_process_group(command, Signal::KILL);
            tree::signal(Signal::KILL);
        }
        Guard { over }
    }

    /// Which limit the command was ended for.
    pub(super) fn finish(self) -> Option<Limit> {
        *self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watch {
    control: UnixStream,
    command: Pid,
    limits: Limits,
    clean_up: Option<Vec<String>>,
    over: Arc<Mutex<Option<Limit>>>,
}

impl Watch {
    fn run(mut self) {
        let mut order = [0];
        let mut interval = SHORT_INTERVAL;
        loop {
            // Without a time limit the limits are not watched, but orders still come.
            let _ = self.control.set_read_timeout(Some(interval));
            match self.control.read(&mut order) {
                Ok(0) => return self.end(),
                Ok(_) if order[0] == TERMINATE => tree::signal(Signal::TERM),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let usage = tree::usage(self.limits.processes);
                    if let Some(limit) = self.exceeded(usage) {
                        *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Some(limit);
                        return self.end();
                    }
                    let many = usage.processes > self.limits.processes / 4;
                    interval = if many { SHORT_INTERVAL } else { INTERVAL };
                }
                Err(_) => return self.end(),
            }
        }
    }

    fn exceeded(&self, usage: tree::Use) -> Option<Limit> {
        if usage.processes > self.limits.processes {
            Some(Limit::Processes)
        } else if usage.memory_bytes > self.limits.memory_bytes {
            Some(Limit::Memory)
        } else {
            None
        }
    }

    /// Kills everything. The thread that waits for the command sees it end, and reaps the rest.
    fn end(&self) {
        let _ = kill_process_group(self.command, Signal::KILL);
        tree::signal(Signal::KILL);
        if let Some(arguments) = &self.clean_up {
            let _: ExitCode = clean_up(arguments);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
fn clean_up(arguments: &[String]) -> ExitCode {
    let Some((program, arguments)) = arguments.split_first() else { return ExitCode::FAILURE };
    let mut command = std::process::Command::new(program);
    command.args(arguments).env("PATH", crate::backend::PATH);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.status() {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
