//! One host: a Python process that user code runs in.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use petasos_sandbox::{Command, Confine, Sandbox, Streams};
use tokio::io::{AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::frame;
use super::message::{Abandon, Answer, Ask, Granted, Numbered, Order, Registration, Said, Told};
use super::output;
use super::settings::Settings;
use super::wishes::{Caller, Wishes};

/// The text that the interpreter is given.
const BOOT: &str = include_str!("petasos_host/boot.py");
/// The host itself, in the order in which its parts need each other.
const MODULES: [(&str, &str); 7] = [
    ("wire", include_str!("petasos_host/wire.py")),
    ("calls", include_str!("petasos_host/calls.py")),
    ("agent", include_str!("petasos_host/agent.py")),
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
    under_way: Mutex<HashMap<u64, UnderWay>>,
    most_calls: usize,
    last_number: AtomicU64,
    registrations: Mutex<Vec<(String, Registration)>>,
    has_registered: Notify,
    /// What it wrote last, to say why it died.
    last_lines: output::LastLines,
    /// Cancelled to end it.
    end: CancellationToken,
    /// Set before the orders under way are given up, so that none is sent afterwards unnoticed.
    is_gone: AtomicBool,
    /// Whose orders were under way when it ended.
    casualties: Mutex<Vec<Arc<str>>>,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

/// An order that is being carried out.
struct UnderWay {
    whose: Arc<str>,
    since: Instant,
    caller: Caller,
    reply: oneshot::Sender<Result<Answer, Lost>>,
}

/// The host died before it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lost {
    /// This call is what it died of.
    ByThis,
    /// Others were under way too, or one of them is known to have been the cause.
    PerhapsByAnother,
}

/// An order that was sent.
pub(super) struct Sent {
    pub(super) number: u64,
    pub(super) reply: oneshot::Receiver<Result<Answer, Lost>>,
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
            })
            .map_err(|error| error.to_string())?;
        let (stdin, stdout, stderr, mut handle) = process.into_parts();
        let (outbox, frames) = mpsc::unbounded_channel();
        let host = Arc::new(Host {
            outbox,
            under_way: Mutex::default(),
            most_calls: settings.most_calls,
            last_number: AtomicU64::new(0),
            registrations: Mutex::default(),
            has_registered: Notify::new(),
            last_lines: output::LastLines::default(),
            end: CancellationToken::new(),
            is_gone: AtomicBool::new(false),
            casualties: Mutex::default(),
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
                host.lose_all(None);
            }
            ended.cancel();
        });
        Ok(host)
    }

    /// Sends an order on behalf of a plugin or handler, unless too many are under way.
    pub(super) fn order(&self, whose: &Arc<str>, caller: Caller, order: Order<'_>) -> Result<Sent, String> {
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let frame = frame::encode(&Numbered { id: number, order })?;
        let (sender, reply) = oneshot::channel();
        let entry = UnderWay { whose: Arc::clone(whose), since: Instant::now(), caller, reply: sender };
        {
            let mut under_way = lock(&self.under_way);
            // Whether it is there can always be asked.
            if under_way.len() >= self.most_calls && !entry.whose.is_empty() {
                return Err(format!(
                    "{} calls are under way in its Python host, the most that plugins.max_concurrent_calls allows",
                    under_way.len()
                ));
            }
            under_way.insert(number, entry);
        }
        // Nobody takes it if the host has ended; then the call is lost with the others.
        let _ = self.outbox.send(frame);
        if self.is_gone.load(Ordering::SeqCst) {
            self.lose_all(None);
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
        lock(&self.under_way).remove(&sent.number);
        matches!(answered, Ok(Ok(Ok(_))))
    }

    /// Ends a host that does not answer. The oldest order under way is what holds it.
    pub(super) fn end_held(&self) {
        let culprit = {
            let under_way = lock(&self.under_way);
            let real = under_way.iter().filter(|(_, entry)| !entry.whose.is_empty());
            real.min_by_key(|(_, entry)| entry.since).map(|(number, _)| *number)
        };
        self.lose_all(culprit);
        self.end.cancel();
    }

    /// Ends it when what is under way has ended, at the latest after `patience`.
    pub(super) fn retire(self: &Arc<Self>, patience: Duration) {
        let host = Arc::clone(self);
        tokio::spawn(async move {
            let idle = async {
                while !lock(&host.under_way).is_empty() {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            };
            let _ = tokio::time::timeout(patience, idle).await;
            host.end.cancel();
        });
    }

    /// Forgets an order whose answer is of no use to anybody.
    pub(super) fn forget(&self, number: u64) {
        lock(&self.under_way).remove(&number);
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
        lock(&self.casualties).clone()
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
            Said::Answer(answer) => {
                if let Some(entry) = lock(&self.under_way).remove(&answer.id) {
                    // Nobody may be waiting any more.
                    let _ = entry.reply.send(Ok(answer));
                }
            }
            Said::Ask(Ask { ask, call, wish }) => {
                let caller =
                    call.and_then(|call| lock(&self.under_way).get(&call).map(|entry| entry.caller.clone()));
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

    /// Tells everybody who waits that no answer will come.
    fn lose_all(&self, culprit: Option<u64>) {
        let mut under_way = lock(&self.under_way);
        let whose = under_way.values().map(|entry| &entry.whose).filter(|whose| !whose.is_empty());
        let whose: Vec<Arc<str>> = whose.cloned().collect();
        let is_one = whose.iter().all(|one| *one == whose[0]);
        let blamed =
            culprit.and_then(|culprit| under_way.get(&culprit)).map(|entry| Arc::clone(&entry.whose));
        lock(&self.casualties).extend(match blamed {
            Some(one) => vec![one],
            None => whose,
        });
        for (number, entry) in under_way.drain() {
            let is_cause = culprit.map_or(is_one, |culprit| culprit == number);
            let lost = if is_cause { Lost::ByThis } else { Lost::PerhapsByAnother };
            let _ = entry.reply.send(Err(lost));
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
