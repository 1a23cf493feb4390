//! `patch`: changes files of the workspace, by replacing text or by a patch of several files.

mod apply;
mod locate;
mod parse;

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use similar::TextDiff;

use crate::arguments;
use crate::output::bounded;
use crate::tool::{Invocation, Tool, ToolOutput};
use crate::workspace::{Workspace, Workspaces};
use apply::Changes;

/// How long may be looked for the smallest difference. After that any one does.
const MAX_DIFF_TIME: Duration = Duration::from_secs(2);

/// The largest file, before and after its change together, whose difference is shown.
const MAX_DIFF_BYTES: usize = 6 * 1024 * 1024;

/// Changes files.
#[derive(Clone)]
pub(crate) struct Patch {
    pub(crate) workspaces: Workspaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    mode: Option<Mode>,
    path: Option<String>,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    patch: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Replace,
    Patch,
}

impl Tool for Patch {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "patch".to_owned(),
            description: "Change files of the workspace. mode replace puts new_string in place of old_string, which \
                          must be unique in the file unless replace_all is set. mode patch takes several files: \
                          '*** Begin Patch', then '*** Update File: path' with '@@ context', ' kept', '-removed' and \
                          '+added' lines, '*** Add File: path' with '+' lines or '*** Delete File: path', then \
                          '*** End Patch'."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "mode": { "enum": ["replace", "patch"] },
                    "path": { "type": "string" },
                    "old_string": { "type": "string" },
                    "new_string": { "type": "string" },
                    "replace_all": { "type": "boolean" },
                    "patch": { "type": "string" },
                },
                "required": ["mode"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        match input.get("path").and_then(Value::as_str) {
            Some(path) => Some(path.to_owned()),
            None => parse::paths(input.get("patch")?.as_str()?).ok().map(|paths| paths.join(", ")),
        }
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let workspaces = self.workspaces.clone();
        async move { workspaces.run_tool(invocation, change).await }.boxed()
    }
}

fn change(workspace: &Workspace, invocation: &Invocation) -> Result<ToolOutput, String> {
    let input: Input = arguments::parse(&invocation.input)?;
    let mut changes = Changes::new(workspace);
    let mode = input.mode.unwrap_or(if input.patch.is_some() { Mode::Patch } else { Mode::Replace });
    match mode {
        Mode::Replace => {
            let path = input.path.ok_or("path is missing.")?;
            let old = input.old_string.ok_or("old_string is missing.")?;
            let new = input.new_string.ok_or("new_string is missing.")?;
            changes.replace(&path, &old, &new, input.replace_all)?;
        }
        Mode::Patch => changes.patch(&input.patch.ok_or("patch is missing.")?)?,
    }
    let files = changes.write()?;
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let text = json!({ "files_modified": paths, "diff": diff(workspace, invocation, &files) });
    Ok(ToolOutput::ok(text.to_string()))
}

/// What was changed, as people read it.
fn diff(workspace: &Workspace, invocation: &Invocation, files: &[apply::Changed]) -> String {
    let mut text = String::new();
    for file in files {
        let (before, after) =
            (file.before.as_deref().unwrap_or_default(), file.after.as_deref().unwrap_or_default());
        if file.bytes() > MAX_DIFF_BYTES {
            text += &format!("{}: too large to show what changed\n", file.path);
            continue;
        }
        let diff = TextDiff::configure().timeout(MAX_DIFF_TIME).diff_lines(before, after);
        text += &diff.unified_diff().context_radius(2).header(&file.path, &file.path).to_string();
    }
    bounded(workspace, &invocation.tool_use_id, text)
}
