//! What the system tells the process to do.

use anyhow::{Context, Result};
use futures_util::FutureExt;
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

/// The person did not want to wait any longer.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted before the server answered; it may have taken what was sent")
    }
}

impl std::error::Error for Interrupted {}

/// Ctrl-C, for commands that do something about it.
pub(crate) struct Interrupts {
    signals: Signals,
}

impl Interrupts {
    /// From now on Ctrl-C is told here and does not end the process. SIGTERM still does.
    pub(crate) fn listen() -> Result<Interrupts> {
        let signals = Signals::listen_for_interrupts().context("cannot listen for signals")?;
        Ok(Interrupts { signals })
    }

    /// Waits for the next Ctrl-C.
    pub(crate) async fn next(&mut self) {
        self.signals.next().await;
    }

    /// Waits for an answer, and no longer than until the next Ctrl-C.
    pub(crate) async fn or<T>(&mut self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            answer = answer => answer,
            () = self.next() => Err(Interrupted.into()),
        }
    }

    /// Forgets those that came before now.
    pub(crate) fn forget(&mut self) {
        while self.next().now_or_never().is_some() {}
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    /// None if SIGTERM does what it always does.
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn listen() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = Some(signal(SignalKind::terminate())?);
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate })
    }

    fn listen_for_interrupts() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: None })
    }

    /// Waits for a signal and returns the exit code of a process that it ends.
    async fn next(&mut self) -> i32 {
        let terminate = async {
            match &mut self.terminate {
                Some(terminate) => terminate.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => 130,
            _ = terminate => 143,
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

    fn listen_for_interrupts() -> std::io::Result<Signals> {
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
