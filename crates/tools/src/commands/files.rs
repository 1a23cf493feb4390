//! The files that a command writes and could run, and its pipes that have names.

use std::collections::BTreeMap;

use super::flow::Flow;

/// What is in the files of a command, as far as it wrote them itself.
#[derive(Debug, Default)]
pub(super) struct Files {
    written: BTreeMap<String, Flow>,
    /// Commands that read what is written to a path: `>(…)`.
    readers: BTreeMap<String, String>,
    pipes: usize,
}

impl Files {
    pub(super) fn get(&self, path: &str) -> Option<&Flow> {
        self.written.get(plain(path))
    }

    pub(super) fn append(&mut self, path: &str, flow: Flow) {
        self.written.entry(plain(path).to_owned()).or_default().append(flow);
    }

    /// Opens something for reading under a number, as `exec 3< file` does.
    pub(super) fn open(&mut self, number: &str, flow: Flow) {
        self.written.insert(Files::opened(number), flow);
    }

    /// The path of an open file.
    pub(super) fn opened(number: &str) -> String {
        format!("/dev/fd/{number}")
    }

    /// The path from which a command's output can be read: `<(…)`.
    pub(super) fn pipe_from(&mut self, prints: Flow) -> String {
        let path = self.pipe();
        self.append(&path, prints);
        path
    }

    /// The path through which a command is written to: `>(…)`.
    pub(super) fn pipe_into(&mut self, command: String) -> String {
        let path = self.pipe();
        self.readers.insert(path.clone(), command);
        path
    }

    /// The command that reads what is written to this path. It is asked for once.
    pub(super) fn take_reader(&mut self, path: &str) -> Option<String> {
        self.readers.remove(path)
    }

    /// A command of which nobody knows what it reads.
    pub(super) fn take_any_reader(&mut self) -> Option<String> {
        self.readers.pop_first().map(|(_, reader)| reader)
    }

    fn pipe(&mut self) -> String {
        self.pipes += 1;
        format!("/dev/fd/{}", 62 + self.pipes)
    }
}

fn plain(path: &str) -> &str {
    path.trim_start_matches("./")
}
