//! Keeps results short: the model gets the beginning, the end, and the path of a file with all of it.

use std::collections::VecDeque;
use std::io::Write;

use cap_std::fs::File;

use crate::plain_text::plain;
use crate::workspace::{OURS, Workspace};

/// How much of the beginning is shown.
const HEAD: usize = 12_000;
/// How much of the end is shown. It is more: that is where errors are.
const TAIL: usize = 18_000;
/// The most that is kept in a file.
const MAX_KEPT: u64 = 10 * 1024 * 1024;

/// Gathers what a tool or a command says, of whatever length.
pub(crate) struct Collector {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    /// Where all of it goes once it is long.
    name: String,
    file: Option<File>,
}

impl Collector {
    /// For the call of that id.
    pub(crate) fn new(tool_use_id: &str) -> Self {
        let name = format!("{OURS}/output/{tool_use_id}.txt");
        Collector { head: Vec::new(), tail: VecDeque::new(), total: 0, name, file: None }
    }

    pub(crate) fn push(&mut self, workspace: &Workspace, bytes: &[u8]) {
        let before = self.total;
        self.total += u64::try_from(bytes.len()).unwrap_or_default();
        let (first, rest) = bytes.split_at(bytes.len().min(HEAD.saturating_sub(self.head.len())));
        if self.file.is_none() && self.tail.len() + rest.len() > TAIL {
            self.begin_file(workspace);
        }
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        if self.tail.len() > TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
        if before < MAX_KEPT
            && let Some(file) = &mut self.file
            && file.write_all(bytes).is_err()
        {
            self.file = None;
        }
    }

    /// Begins the file with what has come so far. If it cannot be made, only the middle is lost.
    fn begin_file(&mut self, workspace: &Workspace) {
        let directory = workspace.directory();
        let made =
            directory.create_dir_all(format!("{OURS}/output")).and_then(|()| directory.create(&self.name));
        let written = made.and_then(|mut file| {
            file.write_all(&self.head)?;
            file.write_all(self.tail.make_contiguous())?;
            Ok(file)
        });
        self.file = written.ok();
    }

    /// What the model gets.
    pub(crate) fn finish(mut self, workspace: &Workspace) -> String {
        if self.head.contains(&0) {
            return self.describe_binary(workspace);
        }
        let shown = u64::try_from(self.head.len() + self.tail.len()).unwrap_or_default();
        if shown == self.total {
            self.head.extend(self.tail);
            return plain(&String::from_utf8_lossy(&self.head));
        }
        let head = plain(&String::from_utf8_lossy(&self.head));
        let tail = plain(&String::from_utf8_lossy(self.tail.make_contiguous()));
        let left_out = self.total - shown;
        let place = match &self.file {
            Some(_) if self.total > MAX_KEPT => format!("; the first {MAX_KEPT} bytes are in {}", self.name),
            Some(_) => format!("; all of it is in {}", self.name),
            None => String::new(),
        };
        format!("{head}\n[… {left_out} bytes left out{place} …]\n{tail}")
    }

    fn describe_binary(mut self, workspace: &Workspace) -> String {
        if self.file.is_none() {
            self.begin_file(workspace);
        }
        let place = self.file.map(|_| format!(", in {}", self.name)).unwrap_or_default();
        format!("[{} bytes of binary data{place}]", self.total)
    }
}

/// A text as the model gets it: whole if it is short, else as the beginning, the end and the path of all of it.
pub fn bounded(workspace: &Workspace, tool_use_id: &str, text: String) -> String {
    if !is_long(&text) {
        return text;
    }
    let mut collector = Collector::new(tool_use_id);
    collector.push(workspace, text.as_bytes());
    collector.finish(workspace)
}

/// Whether a text is too long to be shown whole.
pub(crate) fn is_long(text: &str) -> bool {
    text.len() > HEAD + TAIL
}
