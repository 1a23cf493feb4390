//! `process`: looks after commands that `terminal` started in the background.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::parse;
use crate::commands::{self, Approvals};
use crate::output::keep_bounded;
use crate::plain_text::plain;
use crate::processes::{Entry, Processes};
use crate::terminal::{exit_code, problem};
use crate::tool::{Invocation, Risk, Tool, ToolOutput};
use crate::unfinished::ended;
use crate::workspace::{Workspace, Workspaces};

const DEFAULT_WAIT: u64 = 60;
const MAX_WAIT: u64 = 600;

/// Looks after commands in the background.
#[derive(Clone)]
pub(crate) struct ProcessTool {
    pub(crate) workspaces: Workspaces,
    pub(crate) processes: Processes,
    pub(crate) approvals: Approvals,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    action: Action,
    process_id: Option<String>,
    data: Option<String>,
    timeout: Option<u64>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Poll,
    Log,
    Wait,
    Kill,
    Write,
    Submit,
    Close,
}

impl Tool for ProcessTool {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "process".to_owned(),
            description: "Look after commands in the background. poll gives new output, log all of it, wait waits for \
                          the end, write sends data to its input, submit does so with a newline, close ends its input."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": {
                    "action": { "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close"] },
                    "process_id": { "type": "string" },
                    "data": { "type": "string" },
                    "timeout": { "type": "integer", "description": "Seconds to wait, 60 unless set." },
                },
                "required": ["action"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).unwrap_or_default();
        Some(
            format!("{} {} {}", input.get("action")?.as_str()?, text("process_id"), text("data"))
                .trim_end()
                .to_owned(),
        )
    }

    /// To look at a command is harmless. What is written to one may be read by a shell, so it is judged like a command.
    fn risk(&self, input: &Map<String, Value>) -> Risk {
        // What does not fit is never carried out.
        let Ok(input) = parse::<Input>(input) else { return Risk::Harmless };
        match input.action {
            Action::List | Action::Poll | Action::Log | Action::Wait => Risk::Harmless,
            Action::Kill | Action::Close => Risk::Ordinary,
            Action::Write | Action::Submit => {
                let data = ended(input.data.as_deref().unwrap_or_default());
                commands::judge_input(&data, &self.approvals).risk
            }
        }
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        async move { tool.execute(&invocation).await.unwrap_or_else(ToolOutput::error) }.boxed()
    }
}

impl ProcessTool {
    async fn execute(&self, invocation: &Invocation) -> Result<ToolOutput, String> {
        if let Risk::Forbidden { reason } = self.risk(&invocation.input) {
            return Err(reason);
        }
        let input: Input = parse(&invocation.input)?;
        let workspace = self.workspaces.opened(invocation).await?;
        if input.action == Action::List {
            let processes: Vec<Value> =
                self.processes.list(&workspace).iter().map(|entry| describe(entry)).collect();
            return Ok(ToolOutput::ok(json!({ "processes": processes }).to_string()));
        }
        let Some(id) = &input.process_id else { return Err("process_id is missing.".to_owned()) };
        let Some(entry) = self.processes.get(&workspace, id) else {
            return Err(format!(
                "There is no process {id}. Processes end when the server does; start the command again."
            ));
        };
        let output = self.act(&entry, &input).await?;
        let mut text = describe(&entry);
        if let Some(output) = output {
            text["output"] = Value::String(shown(&workspace, &invocation.tool_use_id, &output).await);
        }
        Ok(ToolOutput::ok(text.to_string()))
    }

    /// Does what was asked for. Returns the output to show, if any.
    async fn act(&self, entry: &Arc<Entry>, input: &Input) -> Result<Option<Vec<u8>>, String> {
        let data = || input.data.as_deref().ok_or("data is missing.");
        match input.action {
            Action::List => Ok(None),
            Action::Poll => Ok(Some(entry.new_output())),
            Action::Log => Ok(Some(entry.output())),
            Action::Wait => {
                let limit = Duration::from_secs(input.timeout.unwrap_or(DEFAULT_WAIT).min(MAX_WAIT));
                // If it goes on for longer, the status says so.
                let _ = tokio::time::timeout(limit, entry.wait()).await;
                Ok(Some(entry.new_output()))
            }
            Action::Kill => {
                entry.kill();
                entry.wait().await;
                Ok(Some(entry.new_output()))
            }
            Action::Write => entry.write(data()?, &self.approvals).await.map(|()| None),
            Action::Submit => entry.write(&format!("{}\n", data()?), &self.approvals).await.map(|()| None),
            Action::Close => {
                entry.close_input().await;
                Ok(None)
            }
        }
    }
}

fn describe(entry: &Entry) -> Value {
    let mut text = json!({
        "process_id": entry.id,
        "command": entry.command.chars().take(200).collect::<String>(),
        "status": "running",
        "seconds": entry.started.elapsed().as_secs(),
    });
    if let Some(ended) = entry.ended() {
        text["status"] = "ended".into();
        text["exit_code"] = exit_code(&ended).into();
        if let Some(problem) = problem(&ended) {
            text["error"] = problem.into();
        }
    }
    text
}

async fn shown(workspace: &Workspace, tool_use_id: &str, output: &[u8]) -> String {
    keep_bounded(workspace, tool_use_id, plain(&String::from_utf8_lossy(output))).await
}
