//! `write_file`: puts a whole file into the workspace.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::tool::{Invocation, Tool, ToolOutput};
use crate::workspace::{Workspace, Workspaces};

/// The largest file that is written.
const MAX_BYTES: usize = 10 * 1024 * 1024;

/// Writes files.
#[derive(Clone)]
pub(crate) struct WriteFile {
    pub(crate) workspaces: Workspaces,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "write_file".to_owned(),
            description:
                "Write a whole file of the workspace, in place of one that is there. Directories are made. \
                          To change a part of a file, use patch."
                    .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
                "required": ["path", "content"],
            })
            .into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        let bytes = input.get("content").and_then(Value::as_str).map_or(0, str::len);
        Some(format!("{} ({bytes} bytes)", input.get("path")?.as_str()?))
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let workspaces = self.workspaces.clone();
        async move { workspaces.run_tool(invocation, write).await }.boxed()
    }
}

fn write(workspace: &Workspace, invocation: &Invocation) -> Result<ToolOutput, String> {
    let input: Input = parse(&invocation.input)?;
    let bytes = input.content.len();
    if bytes > MAX_BYTES {
        return Err(format!("content has {bytes} bytes; write_file writes at most {MAX_BYTES} bytes."));
    }
    let path = workspace.relative(&input.path)?;
    workspace.write_file(&path, input.content.as_bytes())?;
    let text = json!({ "path": path, "bytes_written": input.content.len() });
    Ok(ToolOutput::ok(text.to_string()))
}
