//! `search_files`: finds text in files, or files by their names.

mod content;
mod ignore_files;
mod notes;
mod walk;

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::output::bounded;
use crate::tool::{Invocation, Tool, ToolOutput};
use crate::workspace::{Workspace, Workspaces};

const DEFAULT_RESULTS: usize = 50;
const MAX_RESULTS: usize = 500;
const MAX_CONTEXT: usize = 10;
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
        let workspaces = self.workspaces.clone();
        async move { workspaces.run_tool(invocation, search).await }.boxed()
    }
}

fn search(workspace: &Workspace, invocation: &Invocation) -> Result<ToolOutput, String> {
    let mut input: Input = parse(&invocation.input)?;
    input.context = input.context.min(MAX_CONTEXT);
    let limit = input.limit.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
    let deadline = Instant::now() + MAX_TIME;
    let mut files =
        walk::Files::below(workspace, input.path.as_deref(), input.file_glob.as_deref(), deadline)?;
    let mut page = Page { limit, offset: input.offset, ..Page::default() };
    match input.target {
        Target::Files => find_names(&mut files, &input.pattern, &mut page)?,
        Target::Content => content::search(workspace, &mut files, &input, &mut page)?,
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
        files.notes.out_of_time();
    }
    if let Some(note) = files.notes.text() {
        text["note"] = note.into();
    }
    Ok(ToolOutput::ok(bounded(workspace, &invocation.tool_use_id, text.to_string())))
}

/// The part of the results that is shown.
#[derive(Default)]
struct Page {
    limit: usize,
    offset: usize,
    total: usize,
    rows: Vec<Value>,
}

impl Page {
    fn add(&mut self, row: impl FnOnce() -> Value) {
        if self.total >= self.offset && self.rows.len() < self.limit {
            self.rows.push(row());
        }
        self.total += 1;
    }
}

fn find_names(files: &mut walk::Files<'_>, pattern: &str, page: &mut Page) -> Result<(), String> {
    // A name without any sign of a glob is meant as a part of one.
    let is_glob = pattern.contains(['*', '?', '[', '{']);
    let glob = walk::glob(&if is_glob { pattern.to_owned() } else { format!("*{pattern}*") })?;
    for path in files.filter(|path| walk::matches(&glob, path)) {
        page.add(|| Value::String(path.display().to_string()));
    }
    Ok(())
}
