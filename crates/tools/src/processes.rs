//! Commands that run in the background.
//!
//! They belong to a workspace, live in memory, and end with the server: a session that goes on after a restart is
//! told that they are gone.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use petasos_sandbox::{Ended, Process};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{oneshot, watch};

use crate::commands::Approvals;
use crate::redact::Redactor;
use crate::terminal::exit_code;
use crate::unfinished::UnfinishedLine;
use crate::workspace::{Workspace, WorkspaceWatch};

/// How many may run in one workspace.
const MAX_RUNNING: usize = 16;
/// How many are remembered for one workspace, those that ended included.
const MAX_REMEMBERED: usize = 64;
/// How much of the output of each is kept.
const MAX_OUTPUT: usize = 200_000;
/// How long one is remembered after its end.
const MAX_MEMORY: Duration = Duration::from_secs(24 * 60 * 60);
/// How long one may run.
const MAX_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// All commands in the background. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Processes {
    entries: Arc<Mutex<BTreeMap<PathBuf, Entries>>>,
}

/// Those of one workspace, by their ids.
type Entries = BTreeMap<String, Arc<Entry>>;

/// One of them.
pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) command: String,
    pub(crate) started: Instant,
    stdin: tokio::sync::Mutex<Stdin>,
    log: Mutex<Log>,
    ended: watch::Receiver<Option<Ended>>,
    ended_at: OnceLock<Instant>,
    kill: Mutex<Option<oneshot::Sender<()>>>,
}

/// What a command reads.
struct Stdin {
    stream: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    line: UnfinishedLine,
}

/// The end of what a command has said.
#[derive(Default)]
struct Log {
    bytes: VecDeque<u8>,
    /// How much has come in all.
    total: u64,
    /// How much of that was shown by `poll`.
    polled: u64,
}

impl Processes {
    /// Takes a command over. Returns its id.
    pub(crate) fn add(
        &self,
        workspace: &Workspace,
        command: &str,
        process: Process,
        redactor: Redactor,
        watch: WorkspaceWatch,
    ) -> Result<String, String> {
        let mut all = lock(&self.entries);
        all.retain(|_, entries| {
            entries.retain(|_, entry| !entry.ended_long_ago());
            !entries.is_empty()
        });
        let entries = all.entry(workspace.path().to_owned()).or_default();
        let running = entries.values().filter(|entry| entry.ended().is_none()).count();
        if running >= MAX_RUNNING {
            return Err(format!(
                "{running} commands run in the background, the most there may; end one first."
            ));
        }
        while entries.len() >= MAX_REMEMBERED {
            // Ids sort by time, so the first is the oldest.
            let oldest = entries.iter().find(|(_, entry)| entry.ended().is_some());
            let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { break };
            entries.remove(&oldest);
        }
        let id = format!("proc_{}", uuid::Uuid::now_v7().simple());
        entries.insert(id.clone(), look_after(id.clone(), command, process, redactor, watch));
        Ok(id)
    }

    /// Ends all commands of a workspace that is there no more for anybody, and forgets them.
    pub(crate) fn forget(&self, workspace: &Path) {
        // They are known by where it really is. One that was never made has none.
        let Ok(workspace) = workspace.canonicalize() else { return };
        let entries = lock(&self.entries).remove(&workspace);
        entries.iter().flat_map(BTreeMap::values).for_each(|entry| entry.kill());
    }

    /// The command of that id, if it belongs to the workspace.
    pub(crate) fn get(&self, workspace: &Workspace, id: &str) -> Option<Arc<Entry>> {
        lock(&self.entries).get(workspace.path())?.get(id).cloned()
    }

    /// All commands of the workspace, the oldest first.
    pub(crate) fn list(&self, workspace: &Workspace) -> Vec<Arc<Entry>> {
        lock(&self.entries).get(workspace.path()).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}

/// Starts to read what the command says.
fn look_after(
    id: String,
    command: &str,
    process: Process,
    mut redactor: Redactor,
    watch: WorkspaceWatch,
) -> Arc<Entry> {
    let (stdin, mut stdout, _, mut handle) = process.into_parts();
    let (teller, ended) = watch::channel(None);
    let (kill, mut killed) = oneshot::channel();
    let entry = Arc::new(Entry {
        id,
        command: command.to_owned(),
        started: Instant::now(),
        stdin: tokio::sync::Mutex::new(Stdin { stream: stdin, line: UnfinishedLine::default() }),
        log: Mutex::default(),
        ended,
        ended_at: OnceLock::new(),
        kill: Mutex::new(Some(kill)),
    });
    let reading = Arc::clone(&entry);
    tokio::spawn(async move {
        let deadline = tokio::time::sleep(MAX_TIME);
        let exceeded = watch.exceeded();
        tokio::pin!(deadline, exceeded);
        let mut buffer = vec![0; 16 * 1024];
        let ended = loop {
            tokio::select! {
                read = stdout.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => {
                        let mut ended = handle.wait().await;
                        if exit_code(&ended) != 0 {
                            ended.problem = ended.problem.or(watch.reason());
                        }
                        break ended;
                    }
                    Ok(count) => {
                        let piece = redactor.push(buffer.get(..count).unwrap_or_default());
                        lock(&reading.log).push(&piece);
                    }
                },
                () = &mut deadline => break Ended { problem: Some("Its time was up.".into()), ..Ended::default() },
                over = &mut exceeded => break Ended { problem: Some(over), ..Ended::default() },
                _ = &mut killed => break Ended { signal: Some(9), ..Ended::default() },
            }
        };
        lock(&reading.log).push(&redactor.finish());
        // Whatever still runs of it ends here.
        drop(handle);
        let _ = reading.ended_at.set(Instant::now());
        teller.send_replace(Some(ended));
        reading.stdin.lock().await.stream = None;
    });
    entry
}

impl Entry {
    /// How it ended, if it has.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    fn ended_long_ago(&self) -> bool {
        self.ended_at.get().is_some_and(|at| at.elapsed() > MAX_MEMORY)
    }

    /// Waits for its end.
    pub(crate) async fn wait(&self) {
        // The other side is only gone when it has ended.
        let _ = self.ended.clone().wait_for(Option::is_some).await;
    }

    /// Ends it with everything that it has started.
    pub(crate) fn kill(&self) {
        if let Some(kill) = lock(&self.kill).take() {
            let _ = kill.send(());
        }
    }

    /// Writes to its standard input, unless it makes another command of the line that is there.
    pub(crate) async fn write(&self, text: &str, approvals: &Approvals) -> Result<(), String> {
        let mut stdin = self.stdin.lock().await;
        let Stdin { stream, line } = &mut *stdin;
        let Some(stream) = stream else { return Err("Its input is closed.".to_owned()) };
        line.add(text, approvals)?;
        stream.write_all(text.as_bytes()).await.map_err(|error| format!("It does not read: {error}."))
    }

    /// Ends its standard input.
    pub(crate) async fn close_input(&self) {
        self.stdin.lock().await.stream = None;
    }

    /// What it has said since the last time this was asked.
    pub(crate) fn new_output(&self) -> Vec<u8> {
        let mut log = lock(&self.log);
        let kept = u64::try_from(log.bytes.len()).unwrap_or_default();
        let new = (log.total - log.polled).min(kept);
        log.polled = log.total;
        let start = usize::try_from(kept - new).unwrap_or_default();
        log.bytes.range(start..).copied().collect()
    }

    /// All that is kept of what it has said.
    pub(crate) fn output(&self) -> Vec<u8> {
        lock(&self.log).bytes.iter().copied().collect()
    }
}

impl Log {
    fn push(&mut self, bytes: &[u8]) {
        self.total += u64::try_from(bytes.len()).unwrap_or_default();
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(MAX_OUTPUT);
        self.bytes.drain(..over);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
