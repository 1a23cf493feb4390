//! One host: a Python process that user code runs in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use petasos_sandbox::{Command, Confine, FileWrites, Sandbox, Streams};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::frame;
use super::message::{Abandon, Ask, Granted, Numbered, Order, Registration, Said, Told};
use super::orders::{Orders, Outcome};
use super::output;
use super::settings::Settings;
use super::wishes::{Caller, Wishes};

/// The text that the interpreter is given.
const BOOT: &str = include_str!("petasos_host/boot.py");
/// The host itself, in the order in which its parts need each other.
const MODULES: [(&str, &str); 8] = [
    ("wire", include_str!("petasos_host/wire.py")),
    ("calls", include_str!("petasos_host/calls.py")),
    ("agent", include_str!("petasos_host/agent.py")),
    ("loops", include_str!("petasos_host/loops.py")),
    ("cli", include_str!("petasos_host/cli.py")),
    ("plugins", include_str!("petasos_host/plugins.py")),
    ("gateway", include_str!("petasos_host/gateway.py")),
    ("host", include_str!("petasos_host/host.py")),
];

/// How long is waited for what a host that ended has to say.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One host. Dropping it ends the process and everything that it has started.
pub(super) struct Host {
    outbox: mpsc::UnboundedSender<Vec<u8>>,
    orders: Orders,
    registrations: Mutex<Vec<(String, Registration)>>,
    has_registered: Notify,
    /// What it wrote last, to say why it died.
    last_lines: output::LastLines,
    /// Cancelled to end it.
    end: CancellationToken,
    /// Set before the orders under way are given up, so that none is sent afterwards unnoticed.
    is_gone: AtomicBool,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

/// An order that was sent.
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) reply: oneshot::Receiver<Outcome>,
}

impl Host {
    /// Starts a host. What its code asks for is granted by `wishes`.
    pub(super) fn start(
        settings: &Settings,
        sandbox: &Sandbox,
        wishes: &Arc<Wishes>,
    ) -> Result<Arc<Host>, String> {
        let python = &settings.python;
        let process = sandbox
            .start(Command {
                arguments: vec![python.program.clone(), "-c".to_owned(), BOOT.to_owned()],
                env: python.env.clone(),
                workspace: python.directory.clone(),
                directory: python.directory.clone(),
                streams: Streams::Separate,
                confine: Confine::Not,
                files: FileWrites::Limited,
            })
            .map_err(|error| error.to_string())?;
        let (stdin, stdout, stderr, mut handle) = process.into_parts();
        let (outbox, frames) = mpsc::unbounded_channel();
        let host = Arc::new(Host {
            outbox,
            orders: Orders::new(settings.most_calls),
            registrations: Mutex::default(),
            has_registered: Notify::new(),
            last_lines: output::LastLines::default(),
            end: CancellationToken::new(),
            is_gone: AtomicBool::new(false),
            ended: CancellationToken::new(),
        });
        host.send(&MODULES)?;
        if let Some(stdin) = stdin {
            tokio::spawn(write(stdin, frames));
        }
        let log = tokio::spawn(output::log(stderr, host.last_lines.clone()));
        let (weak, wishes) = (Arc::downgrade(&host), Arc::clone(wishes));
        let (end, ended, last_lines) = (host.end.clone(), host.ended.clone(), host.last_lines.clone());
        tokio::spawn(async move {
            let mut stdout = BufReader::new(stdout);
            let reading = async {
                while let Ok(Some(bytes)) = frame::read(&mut stdout).await {
                    let Some(host) = weak.upgrade() else { return };
                    match serde_json::from_slice(&bytes) {
                        Ok(said) => host.hear(said, &wishes),
                        Err(error) => {
                            return tracing::warn!(%error, "a Python host speaks nonsense and is ended");
                        }
                    }
                }
            };
            let is_by_itself = tokio::select! {
                () = reading => true,
                _ = handle.wait() => true,
                () = end.cancelled() => false,
            };
            let problem = if is_by_itself {
                // Its pipes end before its supervisor can say why.
                tokio::time::timeout(LAST_WORDS, handle.wait()).await.ok().and_then(|ended| ended.problem)
            } else {
                None
            };
            // Dropping it ends the process, whose last words come before the end of its streams.
            drop(handle);
            let _ = tokio::time::timeout(LAST_WORDS, log).await;
            if let Some(problem) = problem {
                last_lines.push(&problem);
            }
            if let Some(host) = weak.upgrade() {
                host.is_gone.store(true, Ordering::SeqCst);
                host.orders.lose_all(None);
            }
            ended.cancel();
        });
        Ok(host)
    }

    /// Sends an order on behalf of a plugin or handler, unless too many are under way.
    pub(super) fn order(&self, whose: &Arc<str>, caller: Caller, order: Order<'_>) -> Result<Sent, String> {
        let number = self.orders.next_number();
        let frame = frame::encode(&Numbered { id: number, order })?;
        let reply = self.orders.add(number, whose, caller)?;
        // Nobody takes it if the host has ended; then the call is lost with the others.
        let _ = self.outbox.send(frame);
        if self.is_gone.load(Ordering::SeqCst) {
            self.orders.lose_all(None);
        }
        Ok(Sent { number, reply })
    }

    /// Asks the host to stop carrying out an order.
    pub(super) fn abandon(&self, number: u64) {
        // It may be over.
        let _ = self.send(&Abandon::call(number));
    }

    /// Whether the host answers at all.
    pub(super) async fn answers_within(&self, patience: Duration) -> bool {
        let whose = Arc::from("");
        let Ok(sent) = self.order(&whose, Caller::default(), Order::Ping) else { return false };
        let answered = tokio::time::timeout(patience, sent.reply).await;
        self.orders.forget(sent.number);
        matches!(answered, Ok(Ok(Ok(_))))
    }

    /// Ends a host that does not answer. The oldest order under way is what holds it.
    pub(super) fn end_held(&self) {
        self.orders.lose_all(self.orders.oldest());
        self.end.cancel();
    }

    /// Ends it when what is under way has ended, at the latest after `patience`.
    pub(super) fn retire(self: &Arc<Self>, patience: Duration) {
        let host = Arc::clone(self);
        tokio::spawn(async move {
            let idle = async {
                while !host.orders.is_empty() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let _ = tokio::time::timeout(patience, idle).await;
            host.end.cancel();
        });
    }

    /// Forgets an order whose answer is of no use to anybody.
    pub(super) fn forget(&self, number: u64) {
        self.orders.forget(number);
    }

    /// Ends it now.
    pub(super) fn end(&self) {
        self.end.cancel();
    }

    /// Whether it is ending or has ended, so that it is of no use any more.
    pub(super) fn is_ending(&self) -> bool {
        self.end.is_cancelled() || self.is_gone.load(Ordering::SeqCst)
    }

    /// Waits for its end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whose orders were under way when it ended by itself.
    pub(super) fn casualties(&self) -> Vec<Arc<str>> {
        self.orders.casualties()
    }

    /// Waits for something to be registered.
    pub(super) async fn has_registered(&self) {
        self.has_registered.notified().await;
    }

    /// What was registered since this was last asked, by plugin.
    pub(super) fn take_registrations(&self) -> Vec<(String, Registration)> {
        std::mem::take(&mut *lock(&self.registrations))
    }

    /// What it wrote last.
    pub(super) fn last_words(&self) -> String {
        self.last_lines.text()
    }

    fn send(&self, value: &impl serde::Serialize) -> Result<(), String> {
        let _ = self.outbox.send(frame::encode(value)?);
        Ok(())
    }

    fn hear(self: &Arc<Self>, said: Said, wishes: &Arc<Wishes>) {
        match said {
            Said::Answer(answer) => self.orders.answer(answer),
            Said::Ask(Ask { ask, call, wish }) => {
                let caller = call.and_then(|call| self.orders.caller(call));
                let (host, wishes) = (Arc::downgrade(self), Arc::clone(wishes));
                tokio::spawn(async move {
                    let (result, error) = match wishes.grant(caller.unwrap_or_default(), wish).await {
                        Ok(result) => (Some(result), None),
                        Err(error) => (None, Some(error)),
                    };
                    if let Some(host) = host.upgrade() {
                        let _ = host.send(&Granted { ask, result, error });
                    }
                });
            }
            Said::Told(Told::Registered { plugin, what }) => {
                lock(&self.registrations).push((plugin, what));
                self.has_registered.notify_one();
            }
            Said::Told(Told::Log { level, logger, text }) => output::record(&level, &logger, &text),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(frame) = frames.recv().await {
        if stdin.write_all(&frame).await.is_err() {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
