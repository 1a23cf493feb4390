//! Ends what a command has started beyond its process tree: a container.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::job::Job;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Runs what the job names for it, if anything. Whether that worked nobody could be told.
#[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
pub(super) fn clean_up(job: &Job) {
    let Some((program, arguments)) = job.clean_up.as_deref().and_then(<[String]>::split_first) else {
        return;
    };
    let mut command = Command::new(program);
    // It must reach the daemon that the command has reached.
    command.args(arguments).env_clear().envs(&job.env);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let started = Instant::now();
    let (_keep, pause) = std::sync::mpsc::channel::<()>();
    while matches!(child.try_wait(), Ok(None)) && started.elapsed() < PATIENCE {
        let _ = pause.recv_timeout(PAUSE);
    }
    let _ = child.kill();
}
