//! Makes changes in memory, and writes all of them or none.

use std::io::Read;

use super::locate::{Deadline, find_lines, places, reindented};
use super::parse::{Change, Hunk, parse};
use crate::workspace::Workspace;

/// The largest file that is changed, and that a change makes.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// The most lines of a file that is changed: each takes memory besides its bytes.
const MAX_LINES: usize = 250_000;
/// The most that all files of a patch have together, before and after it.
const MAX_TOTAL_BYTES: usize = 40 * 1024 * 1024;
/// The most places in which one text is replaced.
const MAX_PLACES: usize = 1_000_000;

/// Changes that are not written yet.
pub(super) struct Changes<'a> {
    workspace: &'a Workspace,
    files: Vec<Changed>,
    /// Files to remove whose content is no text to keep in memory. They are removed last, since they could not be put back.
    unread: Vec<String>,
    deadline: Deadline,
}

/// One file before and after. What is not there has no content.
pub(super) struct Changed {
    pub(super) path: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Changed {
    /// How much it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        self.before.as_ref().map_or(0, String::len) + self.after.as_ref().map_or(0, String::len)
    }
}

impl<'a> Changes<'a> {
    pub(super) fn new(workspace: &'a Workspace) -> Self {
        Changes { workspace, files: Vec::new(), unread: Vec::new(), deadline: Deadline::from_now() }
    }

    /// Puts one text in place of another.
    pub(super) fn replace(&mut self, path: &str, old: &str, new: &str, all: bool) -> Result<(), String> {
        let text = self.read(path)?;
        if old.is_empty() {
            return Err("old_string is empty; use write_file for a new file.".to_owned());
        }
        if old == new {
            return Err("old_string and new_string are the same.".to_owned());
        }
        let found = places(&text, old, MAX_PLACES + 1, self.deadline)?;
        match found.len() {
            count if count > MAX_PLACES => {
                return Err(format!(
                    "old_string is in {path} more than {MAX_PLACES} times, the most that patch replaces."
                ));
            }
            0 => return Err(not_found(path, &text, old)),
            1 => {}
            count if !all => {
                return Err(format!(
                    "old_string is in {path} {count} times; add lines around it, or set replace_all."
                ));
            }
            _ => {}
        }
        let (mut after, mut end) = (String::with_capacity(text.len()), 0);
        for place in &found {
            // Lines that look alike may be found in places that overlap.
            let Some(between) = text.get(end..place.range.start) else { continue };
            let there = text.get(place.range.clone()).unwrap_or_default();
            after.push_str(between);
            match place.exact {
                true => after.push_str(new),
                false => after.push_str(&reindented(there, old, new.trim_matches('\n'))),
            }
            end = place.range.end;
            // A few bytes in many places make any number of them.
            fits(path, &after)?;
        }
        after.push_str(text.get(end..).unwrap_or_default());
        fits(path, &after)?;
        self.put(path, Some(after))
    }

    /// Makes the changes of a patch.
    pub(super) fn patch(&mut self, text: &str) -> Result<(), String> {
        parse(text)?.into_iter().try_for_each(|change| self.change(change))
    }

    fn change(&mut self, change: Change) -> Result<(), String> {
        self.deadline.check()?;
        match change {
            Change::Add { path, content } => {
                if self.read(&path).is_ok() {
                    return Err(format!("{path} is there already; use '*** Update File: {path}'."));
                }
                self.put(&path, Some(content))
            }
            Change::Delete { path } => {
                if self.read(&path).is_err() && self.is_stored(&path)? {
                    self.refuse_removed(&path)?;
                    self.unread.push(path);
                    return Ok(());
                }
                self.put(&path, None)
            }
            Change::Update { path, move_to, hunks } => {
                let after = updated(&path, &self.read(&path)?, &hunks, self.deadline)?;
                match move_to {
                    Some(to) if to != path => {
                        if self.read(&to).is_ok() {
                            return Err(format!("{to} is there already, so {path} cannot be moved there."));
                        }
                        self.put(&path, None)?;
                        self.put(&to, Some(after))
                    }
                    _ => self.put(&path, Some(after)),
                }
            }
        }
    }

    /// Whether a file is there and has no changes so far.
    fn is_stored(&self, path: &str) -> Result<bool, String> {
        if self.files.iter().any(|file| file.path == path) {
            return self.read(path).map(|_| false);
        }
        self.workspace.open_file(&self.workspace.relative(path)?).map(|_| true)
    }

    fn refuse_removed(&self, path: &str) -> Result<(), String> {
        match self.unread.iter().any(|removed| removed == path) {
            true => Err(format!("{path} is not there any more.")),
            false => Ok(()),
        }
    }

    /// The content of a file, as the changes so far have it.
    fn read(&self, path: &str) -> Result<String, String> {
        match self.files.iter().rev().find(|file| file.path == path) {
            Some(file) => file.after.clone().ok_or_else(|| format!("{path} is not there any more.")),
            None => self.read_stored(path),
        }
    }

    fn read_stored(&self, path: &str) -> Result<String, String> {
        let relative = self.workspace.relative(path)?;
        let file = self.workspace.open_file(&relative)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        let count = read.map_err(|error| self.workspace.explain(&relative, &error))?;
        if u64::try_from(count).is_ok_and(|count| count > MAX_BYTES) {
            return Err(format!("{path} is too large to be patched (more than {MAX_BYTES} bytes)."));
        }
        let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not a text in UTF-8."))?;
        if text.lines().count() > MAX_LINES {
            return Err(format!("{path} has more than {MAX_LINES} lines, the most that patch changes."));
        }
        Ok(text)
    }

    fn put(&mut self, path: &str, after: Option<String>) -> Result<(), String> {
        self.refuse_removed(path)?;
        if let Some(file) = self.files.iter_mut().find(|file| file.path == path) {
            file.after = after;
        } else {
            let before = self.read_stored(path).ok();
            self.files.push(Changed { path: path.to_owned(), before, after });
        }
        let total: usize = self.files.iter().map(Changed::bytes).sum();
        if total > MAX_TOTAL_BYTES {
            return Err(format!(
                "The files have more than {MAX_TOTAL_BYTES} bytes together, the most that one patch changes; change \
                 fewer of them."
            ));
        }
        Ok(())
    }

    /// Writes everything. What fails on the way is put back.
    pub(super) fn write(mut self) -> Result<Vec<Changed>, String> {
        for (index, file) in self.files.iter().enumerate() {
            if let Err(problem) = self.store(&file.path, file.after.as_deref()) {
                return Err(self.put_back(index, &problem));
            }
        }
        for (index, path) in self.unread.iter().enumerate() {
            match self.store(path, None) {
                Ok(()) => {}
                Err(problem) if index == 0 => return Err(self.put_back(self.files.len(), &problem)),
                Err(problem) => return Err(format!("{problem} Some files are changed already.")),
            }
        }
        let removed = self.unread.into_iter().map(|path| Changed { path, before: None, after: None });
        self.files.extend(removed);
        Ok(self.files)
    }

    /// Puts the first files back as they were, and says what became of them after this problem.
    fn put_back(&self, count: usize, problem: &str) -> String {
        let done = self.files.iter().take(count);
        let back = done.filter_map(|file| self.store(&file.path, file.before.as_deref()).err()).count();
        let state = if back == 0 { "Nothing was changed." } else { "Some files are changed already." };
        format!("{problem} {state}")
    }

    fn store(&self, path: &str, content: Option<&str>) -> Result<(), String> {
        let relative = self.workspace.relative(path)?;
        match content {
            Some(content) => self.workspace.write_file(&relative, content.as_bytes()),
            None => {
                let removed = self.workspace.directory().remove_file(&relative);
                removed.map_err(|error| self.workspace.explain(&relative, &error))
            }
        }
    }
}

fn fits(path: &str, after: &str) -> Result<(), String> {
    if u64::try_from(after.len()).is_ok_and(|length| length <= MAX_BYTES) {
        return Ok(());
    }
    Err(format!(
        "{path} would be larger than {MAX_BYTES} bytes, the most that patch writes; replace less of it."
    ))
}

/// A file with all hunks applied, from top to bottom.
fn updated(path: &str, text: &str, hunks: &[Hunk], deadline: Deadline) -> Result<String, String> {
    let ends_with_newline = text.is_empty() || text.ends_with('\n');
    let mut lines: Vec<&str> = text.lines().collect();
    let mut from = 0;
    for hunk in hunks {
        let find = |wanted: &[&str], from: usize| match find_lines(&lines, wanted, from, deadline)? {
            None if from > 0 => find_lines(&lines, wanted, 0, deadline),
            found => Ok(found),
        };
        for anchor in &hunk.anchors {
            from = find(&[anchor], from)?.ok_or_else(|| format!("{path} has no line '{anchor}'."))?.end;
        }
        let old: Vec<&str> = hunk.old.iter().map(String::as_str).collect();
        let range = if old.is_empty() {
            // Only new lines: after the anchor, or at the end.
            let at = if hunk.anchors.is_empty() || hunk.at_end { lines.len() } else { from };
            at..at
        } else {
            let start = if hunk.at_end { lines.len().saturating_sub(old.len()) } else { from };
            find(&old, start)?.ok_or_else(|| not_found(path, text, &hunk.old.join("\n")))?
        };
        from = range.start + hunk.new.len();
        lines.splice(range, hunk.new.iter().map(String::as_str));
    }
    let mut after = lines.join("\n");
    if ends_with_newline && !after.is_empty() {
        after.push('\n');
    }
    Ok(after)
}

/// Says what was looked for and, if anything is like it, where.
fn not_found(path: &str, text: &str, wanted: &str) -> String {
    let first = wanted.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let like = text.lines().position(|line| !first.is_empty() && line.trim() == first);
    match like {
        Some(index) => format!(
            "{path} does not have this text. Its first line is at line {}, but what follows differs; read the file there.",
            index + 1
        ),
        None => format!(
            "{path} does not have this text; read the file first. It begins with: {}",
            shortened(first)
        ),
    }
}

fn shortened(line: &str) -> String {
    line.chars().take(80).collect()
}
