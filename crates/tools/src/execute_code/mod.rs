//! `execute_code`: a Python script that can call other tools.
//!
//! Its calls come on the script's standard error and are answered on its standard input, so that the sandbox needs no
//! hole for them. They go through the same rules as calls of the model, and what would have to ask does not run. The
//! script itself is judged before it runs, as the same code for `python3 -c` in a command would be.

use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use petasos_core::event::ToolEffect;
use petasos_core::model::ToolSpec;
use petasos_sandbox::{Ended, Process, Sandbox, Streams};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::arguments::parse;
use crate::commands::{self, Approvals};
use crate::output::Collector;
use crate::shell::Shell;
use crate::terminal::{exit_code, problem};
use crate::tool::{Dispatcher, Invocation, Risk, Tool, ToolOutput};
use crate::workspace::{OURS, Workspace, Workspaces};

pub(crate) const NAME: &str = "execute_code";

const BOOTSTRAP: &str = include_str!("bootstrap.py");
const MAX_TIME: Duration = Duration::from_secs(300);
const MAX_CALLS: usize = 50;
/// The longest call.
const MAX_CALL_BYTES: u64 = 2 * 1024 * 1024;

/// The tools that a script can call, if they are there.
const CALLABLE: [&str; 7] =
    ["terminal", "read_file", "write_file", "patch", "search_files", "web_search", "web_extract"];
/// What a script cannot ask for.
const BACKGROUND: &str = "background";

/// Runs scripts.
#[derive(Clone)]
pub(crate) struct ExecuteCode {
    pub(crate) workspaces: Workspaces,
    pub(crate) sandbox: Sandbox,
    pub(crate) approvals: Approvals,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    code: String,
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    input: Map<String, Value>,
}

impl Tool for ExecuteCode {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Run a Python script in the workspace that can call tools, for work of many steps whose \
                          results you need not see: from petasos_tools import terminal, read_file, write_file, patch, \
                          search_files, web_search, web_extract. They take the tools' arguments and return their \
                          results. You get what the script prints."
                .to_owned(),
            input_schema: json!({
                "type": "object",
                "properties": { "code": { "type": "string" } },
                "required": ["code"],
            }).into(),
        }
    }

    fn effect(&self) -> ToolEffect {
        ToolEffect::SideEffect
    }

    fn preview(&self, input: &Map<String, Value>) -> Option<String> {
        input.get("code")?.as_str().map(str::to_owned)
    }

    fn risk(&self, input: &Map<String, Value>) -> Risk {
        let code = input.get("code").and_then(Value::as_str).unwrap_or_default();
        commands::judge_python(code, &self.approvals)
    }

    fn run(&self, invocation: Invocation) -> BoxFuture<'static, ToolOutput> {
        let tool = self.clone();
        async move { tool.execute(invocation).await.unwrap_or_else(ToolOutput::error) }.boxed()
    }
}

impl ExecuteCode {
    async fn execute(&self, invocation: Invocation) -> Result<ToolOutput, String> {
        if let Risk::Forbidden { reason } = self.risk(&invocation.input) {
            return Err(reason);
        }
        let input: Input = parse(&invocation.input)?;
        let workspace = self.workspaces.opened(&invocation).await?;
        let script = format!("{OURS}/code/{}.py", invocation.tool_use_id);
        let path = script.clone();
        let written =
            workspace.run(move |files| files.write_file(path.as_ref(), input.code.as_bytes())).await;
        written.map_err(|error| error.to_string())??;
        let functions = functions(invocation.dispatcher.as_ref());
        let arguments = ["python3", "-u", "-c", BOOTSTRAP, &script, &functions];
        let watch = workspace.watch().await?;
        let mut shell = Shell::new(&self.sandbox, &workspace, &invocation);
        shell.files = watch.files();
        let process = shell.run_with(arguments.map(str::to_owned).into(), Streams::Separate)?;
        let mut collector = Collector::new(&invocation.tool_use_id);
        let started = Instant::now();
        let (ended, over_quota, calls) = {
            let mut run = Run { shell: &shell, workspace: &workspace, collector: &mut collector, calls: 0 };
            let attending = run.attend(process, invocation.dispatcher.as_ref());
            let (ended, over_quota) = tokio::select! {
                ended = tokio::time::timeout(MAX_TIME, attending) => (ended, None),
                over = watch.exceeded() => (Ok(Ended::default()), Some(over)),
            };
            (ended, over_quota, run.calls)
        };
        let mut over_quota = over_quota.or(watch.look().await);
        if ended.as_ref().is_ok_and(|ended| exit_code(ended) != 0) {
            over_quota = over_quota.or(watch.reason());
        }
        let mut text = json!({
            "output": collector.finish(&workspace).await,
            "exit_code": ended.as_ref().map_or(124, exit_code),
            "tool_calls_made": calls,
            "duration_seconds": started.elapsed().as_secs_f32(),
        });
        let problem = match &ended {
            _ if over_quota.is_some() => over_quota,
            Ok(ended) => problem(ended),
            Err(_) => Some(format!("It ran for {} s, the time it had, and was ended.", MAX_TIME.as_secs())),
        };
        match problem {
            Some(problem) => {
                text["error"] = problem.into();
                Ok(ToolOutput::error(text.to_string()))
            }
            None => Ok(ToolOutput::ok(text.to_string())),
        }
    }
}

/// The tools that a script can call and the names of their arguments in order, as JSON.
fn functions(dispatcher: Option<&Dispatcher>) -> String {
    let specs = CALLABLE.iter().filter_map(|name| dispatcher?.spec(name));
    let functions: Map<String, Value> = specs
        .map(|spec| {
            let names = spec.input_schema["properties"].as_object().into_iter().flat_map(Map::keys);
            (spec.name.clone(), names.filter(|name| *name != BACKGROUND).cloned().collect())
        })
        .collect();
    Value::Object(functions).to_string()
}

/// One script that runs.
struct Run<'a> {
    shell: &'a Shell<'a>,
    workspace: &'a Workspace,
    collector: &'a mut Collector,
    calls: usize,
}

impl Run<'_> {
    /// Gathers what the script prints and answers its calls until it ends.
    async fn attend(&mut self, process: Process, dispatcher: Option<&Dispatcher>) -> Ended {
        let mut redactor = self.shell.redactor();
        let (stdin, mut stdout, stderr, mut handle) = process.into_parts();
        let (Some(mut stdin), Some(stderr)) = (stdin, stderr) else { return Ended::default() };
        let mut calls = BufReader::new(stderr);
        let (mut buffer, mut line) = (vec![0; 64 * 1024], Vec::new());
        let mut listening = true;
        loop {
            tokio::select! {
                read = stdout.read(&mut buffer) => match read {
                    Ok(0) | Err(_) => break,
                    Ok(count) => {
                        let piece = redactor.push(buffer.get(..count).unwrap_or_default());
                        self.collector.push(self.workspace, &piece).await;
                    }
                },
                read = read_line(&mut calls, &mut line), if listening => match read {
                    Ok(0) | Err(_) => listening = false,
                    Ok(_) => {
                        let text = std::mem::take(&mut line);
                        match serde_json::from_slice::<Call>(&text) {
                            Ok(call) => {
                                let output = self.call(call, dispatcher).await;
                                let mut answer = json!({ "text": output.text, "is_error": output.is_error }).to_string();
                                answer.push('\n');
                                // A script that is gone has no use for it.
                                listening = stdin.write_all(answer.as_bytes()).await.is_ok();
                            }
                            // What Python says before our code runs.
                            Err(_) => self.collector.push(self.workspace, &redactor.push(&text)).await,
                        }
                    }
                },
            }
        }
        self.collector.push(self.workspace, &redactor.finish()).await;
        handle.wait().await
    }

    async fn call(&mut self, call: Call, dispatcher: Option<&Dispatcher>) -> ToolOutput {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return ToolOutput::error(format!(
                "A script may call tools {MAX_CALLS} times, and this was one more."
            ));
        }
        let callable = CALLABLE.contains(&call.tool.as_str());
        let asks_for_too_much = call.input.contains_key(BACKGROUND);
        match dispatcher {
            Some(dispatcher) if callable && !asks_for_too_much => {
                dispatcher.call(&call.tool, call.input).await
            }
            Some(_) if callable => ToolOutput::error("A script cannot start commands in the background."),
            _ => ToolOutput::error(format!("A script cannot call {}.", call.tool)),
        }
    }
}

/// Reads one line. It can be dropped and called again without losing anything: what was read stays in `line`.
async fn read_line(
    calls: &mut BufReader<Box<dyn tokio::io::AsyncRead + Send + Unpin>>,
    line: &mut Vec<u8>,
) -> std::io::Result<usize> {
    let room = MAX_CALL_BYTES.saturating_sub(u64::try_from(line.len()).unwrap_or(MAX_CALL_BYTES));
    calls.take(room).read_until(b'\n', line).await
}
