//! A command that runs on and answers a line for each line that it gets.
//!
//! One firing has one of its processes to itself. While that is busy, another firing has another one started, up to a
//! bound, so that no session waits for what a hook does for another. A process that has not answered in time is ended.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use petasos_sandbox::{Command, Confine, FileWrites, Handle, Sandbox, Streams};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Semaphore;

use super::failure::HookFailure;
use super::judge::{Exchange, MAX_ANSWER_BYTES};
use super::place::Place;

/// How many firings may be under way at once.
const MAX_PROCESSES: usize = 16;
/// How long a command that keeps ending is left alone at first; it doubles each time.
const FIRST_REST: Duration = Duration::from_millis(500);
/// The longest that it is left alone.
const LONGEST_REST: Duration = Duration::from_secs(60);

/// A command that runs on.
pub(crate) struct Persistent {
    command: String,
    idle: Mutex<Vec<Running>>,
    free: Semaphore,
    trouble: Mutex<Trouble>,
    /// Whether it was ever heard to say more than it was asked.
    is_chatty: AtomicBool,
}

/// One of its processes.
struct Running {
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: BufReader<Box<dyn AsyncRead + Send + Unpin>>,
    handle: Handle,
}

/// Why a process did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    /// It was gone before it had all of the payload.
    NotTold,
    /// It ended without a word, with the payload on its way.
    Silent,
    /// It ended in the middle of a line.
    Interrupted,
    /// It said too much.
    TooLong,
}

/// How often it ended without an answer, one time after another.
#[derive(Debug, Default)]
struct Trouble {
    times: u32,
    until: Option<Instant>,
}

impl Persistent {
    pub(crate) fn new(command: String) -> Self {
        let (idle, trouble) = (Mutex::default(), Mutex::default());
        Persistent {
            command,
            idle,
            free: Semaphore::new(MAX_PROCESSES),
            trouble,
            is_chatty: AtomicBool::new(false),
        }
    }

    /// Has a payload answered.
    pub(crate) async fn ask(
        &self,
        place: &Place,
        sandbox: &Sandbox,
        payload: &[u8],
    ) -> Result<Exchange, HookFailure> {
        let stopping = |_| HookFailure::Failed("the server is stopping".to_owned());
        let _turn = self.free.acquire().await.map_err(stopping)?;
        let start = || self.start(place, sandbox).map_err(HookFailure::Unavailable);
        let idle = self.idle();
        let mut has_answered = idle.is_some();
        let mut running = idle.map_or_else(start, Ok)?;
        let mut answer = running.exchange(payload).await;
        if let (true, Err(failure)) = (has_answered, &answer)
            && running.was_leaving(*failure).await
        {
            running = start()?;
            has_answered = false;
            answer = running.exchange(payload).await;
        }
        match answer {
            Ok(line) => {
                *lock(&self.trouble) = Trouble::default();
                lock(&self.idle).push(running);
                Ok(Exchange { stdout: line, ..Exchange::default() })
            }
            Err(failure) => {
                self.failed();
                let why = failure.to_string();
                let ended = running.handle.ended().and_then(|ended| ended.problem);
                let why = ended.map_or(why.clone(), |problem| format!("{why}: {problem}"));
                // A process that ends before its first answer has not come to work at all.
                let never_worked = !has_answered && matches!(failure, Failure::NotTold | Failure::Silent);
                Err(if never_worked { HookFailure::Unavailable(why) } else { HookFailure::Failed(why) })
            }
        }
    }

    /// A process that waits for something to do. One that ended is forgotten, and so is one that said more than it was
    /// asked: what it says next could be taken for an answer to something else.
    fn idle(&self) -> Option<Running> {
        loop {
            let mut running = lock(&self.idle).pop()?;
            if running.handle.ended().is_some() {
                continue;
            }
            match running.unread() {
                None => return Some(running),
                Some(0) => continue,
                Some(_) => {}
            }
            if !self.is_chatty.swap(true, Ordering::Relaxed) {
                let command = &self.command;
                tracing::warn!(
                    command,
                    "a persistent hook wrote more than one line for a firing and is started anew"
                );
            }
        }
    }

    fn start(&self, place: &Place, sandbox: &Sandbox) -> Result<Running, String> {
        if lock(&self.trouble).until.is_some_and(|until| Instant::now() < until) {
            return Err("it keeps ending and is left alone for a while".to_owned());
        }
        let started = sandbox.start(Command {
            arguments: place.split(&self.command)?,
            env: place.env.clone(),
            workspace: place.directory.clone(),
            directory: place.directory.clone(),
            streams: Streams::Separate,
            confine: Confine::Not,
            files: FileWrites::Limited,
        });
        let (stdin, stdout, stderr, handle) = started.map_err(|error| error.to_string())?.into_parts();
        if let Some(stderr) = stderr {
            tokio::spawn(log_complaints(self.command.clone(), stderr));
        }
        let stdin = stdin.ok_or_else(|| "it has no standard input".to_owned())?;
        Ok(Running { stdin, stdout: BufReader::new(stdout), handle })
    }

    fn failed(&self) {
        let mut trouble = lock(&self.trouble);
        let rest = FIRST_REST.saturating_mul(1 << trouble.times.min(8)).min(LONGEST_REST);
        trouble.times += 1;
        // Once may be an accident.
        trouble.until = (trouble.times > 1).then(|| Instant::now() + rest);
    }
}

impl Running {
    /// How much it has said that was not read yet: none if it is quiet, and nothing if it has ended.
    fn unread(&mut self) -> Option<usize> {
        let unread = self.stdout.fill_buf().now_or_never()?;
        Some(unread.map_or(0, <[u8]>::len))
    }

    /// Whether it was on its way out when it was asked, so that another may be asked instead. One that was gone before
    /// it was told has done nothing yet. If it could still be told, nobody knows whether it read that; then an orderly
    /// end is taken for one that had nothing to do with it. What crashed may have crashed on it, half done, and is not
    /// made to do it twice.
    async fn was_leaving(&mut self, failure: Failure) -> bool {
        match failure {
            Failure::NotTold => true,
            Failure::Silent => self.handle.wait().await.code == Some(0),
            Failure::Interrupted | Failure::TooLong => false,
        }
    }

    async fn exchange(&mut self, payload: &[u8]) -> Result<String, Failure> {
        let mut line = Vec::with_capacity(payload.len() + 1);
        line.extend_from_slice(payload);
        line.push(b'\n');
        self.stdin.write_all(&line).await.map_err(|_| Failure::NotTold)?;
        self.stdin.flush().await.map_err(|_| Failure::NotTold)?;
        line.clear();
        let most = u64::try_from(MAX_ANSWER_BYTES).unwrap_or(u64::MAX);
        let mut bounded = (&mut self.stdout).take(most);
        bounded.read_until(b'\n', &mut line).await.map_err(|_| Failure::Silent)?;
        match line.last() {
            Some(b'\n') => Ok(String::from_utf8_lossy(&line).into_owned()),
            None => Err(Failure::Silent),
            Some(_) if line.len() >= MAX_ANSWER_BYTES => Err(Failure::TooLong),
            Some(_) => Err(Failure::Interrupted),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotTold | Failure::Silent => write!(f, "it ended before it answered"),
            Failure::Interrupted => write!(f, "it ended in the middle of its answer"),
            Failure::TooLong => write!(f, "it answered with more than {MAX_ANSWER_BYTES} bytes"),
        }
    }
}

/// Passes on what a hook complains about.
async fn log_complaints(command: String, mut stderr: Box<dyn AsyncRead + Send + Unpin>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        let text = String::from_utf8_lossy(buffer.get(..count).unwrap_or_default());
        tracing::debug!(command, "a hook says: {}", text.trim_end());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
