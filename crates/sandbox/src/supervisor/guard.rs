//! Listens to the server, and watches over the limits that no kernel keeps for a whole tree of processes.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::tree;
use crate::group::Memory;
use crate::job::{Job, Limit, TERMINATE};
use crate::settings::Limits;

/// How often the limits are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often, right after the start and while there are many processes: a fork bomb is quick.
const SHORT_INTERVAL: Duration = Duration::from_millis(10);

/// Looks after a command on a thread of its own.
pub(super) struct Guard {
    duty: Arc<Mutex<Duty>>,
}

/// Held by the thread for as long as it does something.
#[derive(Default)]
struct Duty {
    /// Which limit the command was ended for.
    over: Option<Limit>,
    /// Whether there is nothing left to look after.
    is_over: bool,
}

impl Guard {
    pub(super) fn start(control: UnixStream, command: Pid, job: &Job, memory: Option<Memory>) -> Guard {
        let duty = Arc::<Mutex<Duty>>::default();
        let watch = Watch { control, command, limits: job.limits, memory, duty: Arc::clone(&duty) };
        let thread = std::thread::Builder::new().spawn(move || watch.run());
        if thread.is_err() {
            // Nothing may run that nobody can end.
            let _ = kill_process_group(command, Signal::KILL);
            tree::signal(Signal::KILL);
        }
        Guard { duty }
    }

    /// From here on nothing is signalled any more. Returns the limit that the command was ended for.
    pub(super) fn finish(self) -> Option<Limit> {
        let mut duty = lock(&self.duty);
        duty.is_over = true;
        duty.over
    }
}

struct Watch {
    control: UnixStream,
    command: Pid,
    limits: Limits,
    /// What happened to the memory of its control group, if it has one.
    memory: Option<Memory>,
    duty: Arc<Mutex<Duty>>,
}

impl Watch {
    fn run(mut self) {
        let mut order = [0];
        let mut interval = SHORT_INTERVAL;
        loop {
            // Without a time limit the limits are not watched, but orders still come.
            let _ = self.control.set_read_timeout(Some(interval));
            let read = self.control.read(&mut order);
            let mut duty = lock(&self.duty);
            if duty.is_over {
                return;
            }
            match read {
                Ok(0) => return self.end(),
                Ok(_) if order[0] == TERMINATE => drop(tree::signal(Signal::TERM)),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    // What cannot be watched over must not go on.
                    let Some(usage) = tree::usage(self.limits.processes) else { return self.end() };
                    if let Some(limit) = self.exceeded(usage) {
                        duty.over = Some(limit);
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
        // The kernel ends one process of a command that uses too much. The rest must not go on without it.
        let ran_out = self.memory.as_ref().is_some_and(Memory::ran_out);
        if usage.processes > self.limits.processes {
            Some(Limit::Processes)
        } else if ran_out || usage.memory_bytes > self.limits.memory_bytes {
            Some(Limit::Memory)
        } else if usage.unnamed_bytes > self.limits.unnamed_bytes {
            Some(Limit::UnnamedFiles)
        } else {
            None
        }
    }

    /// Kills everything. The thread that waits for the command sees it end, and reaps the rest.
    fn end(&self) {
        let _ = kill_process_group(self.command, Signal::KILL);
        tree::signal(Signal::KILL);
    }
}

fn lock(duty: &Mutex<Duty>) -> MutexGuard<'_, Duty> {
    duty.lock().unwrap_or_else(PoisonError::into_inner)
}
