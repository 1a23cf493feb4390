//! Finds text in files.

use std::io::{self, Read};
use std::path::Path;
use std::time::Instant;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde_json::{Value, json};

use super::walk::Files;
use super::{Input, OutputMode, Page};
use crate::beneath::open_regular_file;
use crate::workspace::Workspace;

/// The most characters of a line that are shown.
const MAX_LINE_CHARS: usize = 500;
/// How much memory a line may take, with those around it that are shown. Longer lines are no text for people.
const MAX_LINE_BYTES: usize = 1024 * 1024;
/// The same for a pattern that is not simple: the time for a line grows with both, and nothing stops a match.
const MAX_LINE_BYTES_OF_COMPLEX: usize = 64 * 1024;
/// The longest pattern.
const MAX_PATTERN_LENGTH: usize = 10_000;
/// How much memory a pattern may take, and how much a simple one takes.
const MAX_PATTERN_BYTES: usize = 1024 * 1024;
const SIMPLE_PATTERN_BYTES: usize = 64 * 1024;

/// Looks for the pattern in each file.
pub(super) fn search(
    workspace: &Workspace,
    files: &mut Files<'_>,
    input: &Input,
    page: &mut Page,
) -> Result<(), String> {
    let deadline = files.deadline();
    let (matcher, max_line_bytes) = matcher(&input.pattern)?;
    let context = if input.output_mode == OutputMode::Content { input.context } else { 0 };
    let mut searcher = SearcherBuilder::new()
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(max_line_bytes))
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .build();
    while let Some(path) = files.next() {
        // What was a file may be a link by now.
        let Ok(file) = open_regular_file(workspace.directory(), &path) else { continue };
        let file = UntilDeadline { file, deadline };
        let mut found = Found { path: &path, mode: input.output_mode, count: 0, context: Vec::new(), page };
        let searched = searcher.search_reader(&matcher, file, &mut found);
        let count = found.count;
        // A file that cannot be read to its end is no reason not to look at the others.
        if searched.is_err() {
            files.notes.not_read_to_end(|| path.display().to_string());
        }
        if count > 0 {
            let shown = path.display().to_string();
            match input.output_mode {
                OutputMode::Content => {}
                OutputMode::FilesOnly => page.add(|| Value::String(shown)),
                OutputMode::Count => page.add(|| json!({ "path": shown, "count": count })),
            }
        }
    }
    Ok(())
}

/// A file of whatever length that ends with an error when the time is up.
struct UntilDeadline {
    file: std::fs::File,
    deadline: Instant,
}

impl Read for UntilDeadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.file.read(buffer)
    }
}

/// The matcher of a pattern, and the longest line that it is tried on.
fn matcher(pattern: &str) -> Result<(RegexMatcher, usize), String> {
    if pattern.len() > MAX_PATTERN_LENGTH {
        return Err(format!("The pattern must not be longer than {MAX_PATTERN_LENGTH} bytes."));
    }
    let build =
        |bytes| RegexMatcherBuilder::new().size_limit(bytes).line_terminator(Some(b'\n')).build(pattern);
    if let Ok(simple) = build(SIMPLE_PATTERN_BYTES) {
        return Ok((simple, MAX_LINE_BYTES));
    }
    let complex = build(MAX_PATTERN_BYTES);
    let complex = complex.map_err(|error| format!("The pattern is no regular expression: {error}."))?;
    Ok((complex, MAX_LINE_BYTES_OF_COMPLEX))
}

/// What is found in one file.
struct Found<'a> {
    path: &'a Path,
    mode: OutputMode,
    count: usize,
    /// Lines before the next match.
    context: Vec<String>,
    page: &'a mut Page,
}

impl Found<'_> {
    fn line(number: Option<u64>, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes);
        let text: String = text.trim_end().chars().take(MAX_LINE_CHARS).collect();
        format!("{}|{text}", number.unwrap_or_default())
    }
}

impl Sink for Found<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, Self::Error> {
        self.count += 1;
        if self.mode == OutputMode::Content {
            let (path, number) = (self.path.display().to_string(), found.line_number());
            let text: String =
                String::from_utf8_lossy(found.bytes()).trim_end().chars().take(MAX_LINE_CHARS).collect();
            let before = std::mem::take(&mut self.context);
            self.page.add(|| {
                let mut row = json!({ "path": path, "line": number, "content": text });
                if !before.is_empty() {
                    row["before"] = before.into();
                }
                row
            });
        }
        // Which file has it is known after the first.
        Ok(self.mode != OutputMode::FilesOnly)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, Self::Error> {
        let line = Self::line(context.line_number(), context.bytes());
        match context.kind() {
            grep_searcher::SinkContextKind::After => {
                if let Some(Value::Object(row)) = self.page.rows.last_mut() {
                    let after = row.entry("after").or_insert_with(|| json!([]));
                    after.as_array_mut().map(|after| after.push(line.into())).unwrap_or_default();
                }
            }
            _ => self.context.push(line),
        }
        Ok(true)
    }
}
