//! Keeps results short: the model gets the beginning, the end, and the path of a file with all of it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cap_std::fs::{File, OpenOptions};

use crate::plain_text::plain;
use crate::workspace::{OURS, Workspace};

/// How much of the beginning is shown.
const HEAD: usize = 12_000;
/// How much of the end is shown. It is more: that is where errors are.
const TAIL: usize = 18_000;
/// The most that is kept in a file.
const MAX_KEPT: u64 = 10 * 1024 * 1024;
/// How much is gathered before it is written to the file.
const PIECE: usize = 64 * 1024;

/// Gathers what a tool or a command says, of whatever length.
pub(crate) struct Collector {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    /// Where all of it goes once it is long.
    name: String,
    /// What has yet to be written there.
    unwritten: Vec<u8>,
    file: Arc<Mutex<KeptFile>>,
}

/// The file with all of the output. If it cannot be written, only the middle is lost.
#[derive(Default)]
enum KeptFile {
    #[default]
    None,
    Open(File),
    Failed,
}

impl Collector {
    /// For the call of that id.
    pub(crate) fn new(tool_use_id: &str) -> Self {
        let name = format!("{OURS}/output/{tool_use_id}.txt");
        let (head, tail, unwritten) = (Vec::new(), VecDeque::new(), Vec::new());
        Collector { head, tail, total: 0, name, unwritten, file: Arc::default() }
    }

    /// Takes a piece, and writes to the file what is due.
    pub(crate) async fn push(&mut self, workspace: &Workspace, bytes: &[u8]) {
        self.take(bytes);
        if self.is_long() && self.unwritten.len() >= PIECE {
            self.write(workspace).await;
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if self.total < MAX_KEPT {
            self.unwritten.extend_from_slice(bytes);
        }
        self.total += u64::try_from(bytes.len()).unwrap_or_default();
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD.saturating_sub(self.head.len())));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        if self.tail.len() > TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
    }

    /// Whether there is more than is shown.
    fn is_long(&self) -> bool {
        self.total > u64::try_from(HEAD + TAIL).unwrap_or_default()
    }

    /// Whether all of it belongs into the file.
    fn is_kept(&self) -> bool {
        self.is_long() || self.head.contains(&0)
    }

    /// Writes what is due. If this is dropped the write goes on, and the next waits for it.
    async fn write(&mut self, workspace: &Workspace) {
        let (bytes, name) = (std::mem::take(&mut self.unwritten), self.name.clone());
        let file = Arc::clone(&self.file);
        let written = workspace.run(move |workspace| lock(&file).append(workspace, &name, &bytes)).await;
        if written.is_err() {
            self.file = Arc::new(Mutex::new(KeptFile::Failed));
        }
    }

    /// What the model gets.
    pub(crate) async fn finish(mut self, workspace: &Workspace) -> String {
        if self.is_kept() {
            self.write(workspace).await;
        }
        self.shown()
    }

    /// The same where it may block.
    fn finish_here(mut self, workspace: &Workspace) -> String {
        if self.is_kept() {
            lock(&self.file).append(workspace, &self.name, &self.unwritten);
            self.unwritten.clear();
        }
        self.shown()
    }

    fn shown(mut self) -> String {
        let is_written = matches!(*lock(&self.file), KeptFile::Open(_));
        if self.head.contains(&0) {
            let place = if is_written { format!(", in {}", self.name) } else { String::new() };
            return format!("[{} bytes of binary data{place}]", self.total);
        }
        if !self.is_long() {
            self.head.extend(self.tail);
            return plain(&String::from_utf8_lossy(&self.head));
        }
        let head = plain(&String::from_utf8_lossy(&self.head));
        let tail = plain(&String::from_utf8_lossy(self.tail.make_contiguous()));
        let left_out = self.total - u64::try_from(HEAD + TAIL).unwrap_or_default();
        let place = match is_written {
            true if self.total > MAX_KEPT => format!("; the first {MAX_KEPT} bytes are in {}", self.name),
            true => format!("; all of it is in {}", self.name),
            false => String::new(),
        };
        format!("{head}\n[… {left_out} bytes left out{place} …]\n{tail}")
    }
}

impl KeptFile {
    fn append(&mut self, workspace: &Workspace, name: &str, bytes: &[u8]) {
        let written = match self {
            KeptFile::Failed => return,
            _ if workspace.make_sure_of_room(bytes.len() as u64).is_err() => {
                Err(io::ErrorKind::QuotaExceeded.into())
            }
            KeptFile::Open(file) => file.write_all(bytes),
            KeptFile::None => create(workspace, name).and_then(|mut file| {
                file.write_all(bytes)?;
                *self = KeptFile::Open(file);
                Ok(())
            }),
        };
        if written.is_err() {
            *self = KeptFile::Failed;
        }
    }
}

/// Makes the file anew. Something of a command that has its name, a pipe for example, is removed.
fn create(workspace: &Workspace, name: &str) -> io::Result<File> {
    let directory = workspace.directory();
    directory.create_dir_all(format!("{OURS}/output"))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    directory.open_with(name, &options).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            directory.remove_file(name)?;
            directory.open_with(name, &options)
        }
        _ => Err(error),
    })
}

/// A text as the model gets it: whole if it is short, else as the beginning, the end and the path of all of it. This
/// blocks.
pub(crate) fn bounded(workspace: &Workspace, tool_use_id: &str, text: String) -> String {
    if !is_long(&text) {
        return text;
    }
    let mut collector = Collector::new(tool_use_id);
    collector.take(text.as_bytes());
    collector.finish_here(workspace)
}

/// The same where nothing may block.
pub(crate) async fn keep_bounded(workspace: &Workspace, tool_use_id: &str, text: String) -> String {
    if !is_long(&text) {
        return text;
    }
    let mut collector = Collector::new(tool_use_id);
    collector.push(workspace, text.as_bytes()).await;
    collector.finish(workspace).await
}

/// Whether a text is too long to be shown whole.
pub(crate) fn is_long(text: &str) -> bool {
    text.len() > HEAD + TAIL
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
