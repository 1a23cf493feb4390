//! `read_file`: lines of a text file in the workspace, or a picture.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::picture::{self, Picture, Unusable};
use crate::tool::{Invocation, Tool, ToolOutput};
use crate::workspace::{Workspace, Workspaces};

const DEFAULT_LINES: usize = 500;
const MAX_LINES: usize = 2000;
/// The most characters of one answer.
const MAX_CHARS: usize = 60_000;
/// The most characters of one line.
const MAX_LINE_CHARS: usize = 2000;
/// What so many characters take at most, and one more to see that there are more.
const MAX_LINE_BYTES: usize = (MAX_LINE_CHARS + 1) * 4;
/// The largest file that is read.
const MAX_BYTES: u64 = 50 * 1024 * 1024;

/// Reads files.
#[derive(Clone)]
pub(crate) struct ReadFile {
    pub(crate) workspaces: Workspaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "read_file".to_owned(),
            description: "Read a text file of the workspace (lines come as number|text), or see a picture \
                          (PNG, JPEG, GIF, WebP)."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "offset": { "type": "integer", "description": "The first line, from 1." },
                    "limit": { "type": "integer", "description": "How many lines, 500 unless set." },
                },
                "required": ["path"],
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("path")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let workspaces = self.workspaces.clone();
        async move { workspaces.run_tool(invocation, read).await }.boxed()
    }
}

fn read(workspace: &Workspace, invocation: &Invocation) -> Result<ToolOutput, String> {
    let input: Input = parse(&invocation.input)?;
    let path = workspace.relative(&input.path)?;
    let file = workspace.open_file(&path)?;
    let size = file.metadata().map_err(|error| workspace.explain(&path, &error))?.len();
    if size > MAX_BYTES {
        return Err(format!(
            "{} has {size} bytes; read_file reads files of at most {MAX_BYTES} bytes. Use the terminal.",
            path.display()
        ));
    }
    let mut reader = BufReader::new(file.take(MAX_BYTES));
    let beginning = reader.fill_buf().map_err(|error| workspace.explain(&path, &error))?;
    if beginning.contains(&0) {
        return match picture::media_type(beginning) {
            Some(_) => picture(reader, &path, size),
            None => Err(format!("{} is a binary file of {size} bytes.", path.display())),
        };
    }
    let first = input.offset.unwrap_or(1).max(1);
    let page = Page::read(reader, first, input.limit.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES))
        .map_err(|error| workspace.explain(&path, &error))?;
    let mut text = json!({ "content": page.content, "total_lines": page.total_lines, "file_size": size });
    if page.next <= page.total_lines {
        text["truncated"] = true.into();
        text["next_offset"] = page.next.into();
    } else if first > page.total_lines.max(1) {
        return Err(format!("{} has only {} lines.", path.display(), page.total_lines));
    }
    Ok(ToolOutput::ok(text.to_string()))
}

/// A picture as the model sees it, with a line about it. No more of the file is read than a picture may have.
fn picture(reader: impl Read, path: &Path, size: u64) -> Result<ToolOutput, String> {
    let shown = path.display();
    let unusable = |why: Unusable| {
        format!("{shown} is a binary file of {size} bytes. It cannot be shown as a picture: {why}.")
    };
    let most = u64::try_from(picture::MAX_BYTES).unwrap_or(u64::MAX);
    if size > most {
        return Err(unusable(Unusable::TooManyBytes(size)));
    }
    let mut bytes = Vec::new();
    // A file that grows meanwhile passes the bound, and is refused.
    let read = reader.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{shown} cannot be read: {error}."))?;
    let picture = Picture::read(&bytes).map_err(unusable)?;
    let text = format!("{shown}: {}", picture.described(bytes.len()));
    Ok(ToolOutput { images: vec![picture.data_uri(&bytes)], ..ToolOutput::ok(text) })
}

/// Some lines of a file.
struct Page {
    content: String,
    total_lines: usize,
    /// The line after the last that is shown.
    next: usize,
}

impl Page {
    fn read(mut reader: impl BufRead, first: usize, limit: usize) -> io::Result<Page> {
        let mut page = Page { content: String::new(), total_lines: 0, next: first };
        let (mut line, mut chars) = (Line::default(), 0);
        let mut full = false;
        while line.read(&mut reader)? {
            page.total_lines += 1;
            if page.total_lines >= first && page.total_lines - first < limit && !full {
                let shown = line.shown();
                chars += shown.len() + 8;
                full = chars > MAX_CHARS && page.next > first;
                if !full {
                    page.content.push_str(&format!("{}|{shown}\n", page.total_lines));
                    page.next = page.total_lines + 1;
                }
            }
        }
        Ok(page)
    }
}

/// A line of whatever length, of which only the beginning is in memory.
#[derive(Default)]
struct Line {
    beginning: Vec<u8>,
    bytes: u64,
}

impl Line {
    /// Reads the next line. False at the end.
    fn read(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        self.beginning.clear();
        self.bytes = 0;
        let mut is_there = false;
        loop {
            let piece = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            if piece.is_empty() {
                return Ok(is_there);
            }
            is_there = true;
            let newline = memchr::memchr(b'\n', piece);
            let of_line = piece.get(..newline.unwrap_or(piece.len())).unwrap_or_default();
            let room = MAX_LINE_BYTES.saturating_sub(self.beginning.len());
            self.beginning.extend(of_line.iter().take(room));
            self.bytes += u64::try_from(of_line.len()).unwrap_or_default();
            let used = of_line.len() + usize::from(newline.is_some());
            reader.consume(used);
            if newline.is_some() {
                return Ok(true);
            }
        }
    }

    fn shown(&self) -> String {
        let text = String::from_utf8_lossy(&self.beginning);
        let text = text.trim_end_matches('\r');
        match text.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => {
                let beginning = text.get(..end).unwrap_or_default();
                format!("{beginning} [… the line goes on; it has {} bytes]", self.bytes)
            }
            None => text.to_owned(),
        }
    }
}
