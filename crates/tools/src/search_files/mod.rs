//! `search_files`: finds text in files, or files by their names.

mod content;
mod walk;

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::blocking::blocking;
use crate::output::bounded;
use crate::tool::{Invocation, Tool, ToolOutput};
use crate::workspace::Workspaces;

const DEFAULT_RESULTS: usize = 50;
const MAX_RESULTS: usize = 500;
const MAX_CONTEXT: usize = 10;
/// How many files that were left out are named.
const MAX_NAMED: usize = 5;
/// How long a search may take.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Searches files.
#[derive(Clone)]
pub(crate) struct SearchFiles {
    pub(crate) workspaces: Workspaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    pattern: String,
    #[serde(default)]
    target: Target,
    path: Option<String>,
    file_glob: Option<String>,
    limit: Option<usize>,
    #[serde(default)]
    offset: usize,
    #[serde(default)]
    output_mode: OutputMode,
    #[serde(default)]
    context: usize,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum Target {
    #[default]
    Content,
    Files,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    FilesOnly,
    Count,
}

impl Tool for SearchFiles {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "search_files".to_owned(),
            description:
                "Search the workspace: its files' content by a regular expression, or with target files \
                          their names by a glob such as *.rs. Files that .gitignore names are left out."
                    .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string" },
                    "target": { "enum": ["content", "files"] },
                    "path": { "type": "string", "description": "Where to search, the whole workspace unless set." },
                    "file_glob": { "type": "string", "description": "Only in files of such names." },
                    "limit": { "type": "integer", "description": "50 unless set." },
                    "offset": { "type": "integer" },
                    "output_mode": { "enum": ["content", "files_only", "count"] },
                    "context": { "type": "integer", "description": "Lines around each match." },
                },
                "required": ["pattern"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::ReadOnly
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("pattern")?.as_str().map(str::to_owned)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        blocking(move || tool.search(&invocation)).boxed()
    }
}

impl SearchFiles {
    fn search(&self, invocation: &Invocation) -> Result<ToolOutput, String> {
        let mut input: Input = parse(&invocation.input)?;
        input.context = input.context.min(MAX_CONTEXT);
        let limit = input.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let workspace = self.workspaces.open(invocation)?;
        let deadline = Instant::now() + MAX_TIME;
        let files =
            walk::Files::below(&workspace, input.path.as_deref(), input.file_glob.as_deref(), deadline)?;
        let mut page = Page { limit, offset: input.offset, ..Page::default() };
        match input.target {
            Target::Files => find_names(files, &input.pattern, &mut page)?,
            Target::Content => content::search(&workspace, files, &input, &mut page)?,
        }
        let name = match (input.target, input.output_mode) {
            (Target::Files, _) | (_, OutputMode::FilesOnly) => "files",
            (_, OutputMode::Count) => "counts",
            _ => "matches",
        };
        let mut text = json!({ "total_count": page.total, name: page.rows });
        if page.total > page.offset + limit {
            text["next_offset"] = (page.offset + limit).into();
        }
        if Instant::now() >= deadline {
            text["note"] = "The search took too long and is not complete; search a smaller part.".into();
        } else if let Some(note) = page.note() {
            text["note"] = note.into();
        }
        Ok(ToolOutput::ok(bounded(&workspace, &invocation.tool_use_id, text.to_string())))
    }
}

/// The part of the results that is shown.
#[derive(Default)]
struct Page {
    limit: usize,
    offset: usize,
    total: usize,
    rows: Vec<Value>,
    /// Files that were not searched to their end.
    not_searched: Vec<String>,
}

impl Page {
    fn add(&mut self, row: impl FnOnce() -> Value) {
        if self.total >= self.offset && self.rows.len() < self.limit {
            self.rows.push(row());
        }
        self.total += 1;
    }

    /// What is to be said about files that were not searched to their end.
    fn note(&self) -> Option<String> {
        let some: Vec<&str> = self.not_searched.iter().take(MAX_NAMED).map(String::as_str).collect();
        let more = self.not_searched.len() - some.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let named = some.join(", ");
        (!some.is_empty()).then(|| {
            format!("Not searched to the end, because a line is too long or cannot be read: {named}{more}.")
        })
    }
}

fn find_names(files: walk::Files, pattern: &str, page: &mut Page) -> Result<(), String> {
    // A name without any sign of a glob is meant as a part of one.
    let is_glob = pattern.contains(['*', '?', '[', '{']);
    let glob = walk::glob(&if is_glob { pattern.to_owned() } else { format!("*{pattern}*") })?;
    for path in files.filter(|path| walk::matches(&glob, path)) {
        page.add(|| Value::String(path.display().to_string()));
    }
    Ok(())
}
