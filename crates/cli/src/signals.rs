//! What the system tells the process to do.

use anyhow::{Context, Result};
use tokio_util::sync::CancellationToken;

/// Cancels `shutdown` at the first SIGINT or SIGTERM; the second ends the process at once.
pub(crate) fn watch(shutdown: CancellationToken) -> Result<()> {
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping: turns have 10 seconds to end; a second signal stops at once");
        shutdown.cancel();
        let code = signals.next().await;
        std::process::exit(code);
    });
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal and returns the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = self.terminate.recv() => 143,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn listen() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    /// Waits for Ctrl-C and returns the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        130
    }
}
